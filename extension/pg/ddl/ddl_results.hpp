// What a statement decided: collected on the author while it runs, imposed on the replay.
//
// A statement's OIDs are seen by object_access_hook as they are made; pages of the pool come through RelationSeam.
// Replay hands the same OIDs to PostgreSQL through the variables pg_upgrade uses, one by one, as they are consumed.
#pragma once

#include "extension/pg/ddl/ddl_record.hpp"

namespace gcl {

void install_results_hooks();

// --- the author ---
bool capturing();
void begin_capture();
void drop_capture();  // the statement failed
// Fills in heaps .. outcome; raises if the statement did something that cannot be replayed.  `exempt`: the statement is
// about the extension itself, whose objects have no OIDs in common.
void end_capture(DdlRecord* record, bool exempt);

// --- the replay ---
bool replaying();
void begin_replay(const DdlRecord* record, bool keeps_oids);
void end_replay();
// After the statement: attribute versions and statistics as on the author; ERROR if the catalogs differ.
void finish_replay(const DdlRecord* record);

// Digest of what the catalogs say of these tables and indexes, equal on all primaries; in the caller's context.
char* digest_of(List* relations);

}  // namespace gcl
