// What a statement decided: collected on the coordinator while it runs, imposed on the replay.
//
// A statement's OIDs are seen by object_access_hook as they are made; pages of the pool come through RelationSeam.
// The OIDs of a replay come from a queue (oid_queue.hpp).
#pragma once

#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/record/captures.hpp"
#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

void install_results_hooks();

// --- the coordinator ---
// Fills in made .. outcome; raises if the statement did something that cannot be replayed.  False: all it did is this
// primary's own affair.  `exempt`: the statement is about the extension itself, whose objects have no OIDs in common.
bool end_capture(Capture* capture, DdlRecord* record, const DdlPlan& plan, bool exempt);

// --- what stays here ---
// A statement that runs here and is not captured: what happens if it changes a shared object
// (ddl.captured-changes-only).
enum class LocalStatement : uint8_t {
  kOther,           // refused: the list in ddl_scope has missed it
  kNamed,           // its names meant local objects when it was planned: to be run again
  kDropsExtension,  // nor may it drop other objects of all primaries along
  kLeaving,         // a sequence becomes this primary's own
};
LocalStatement set_local_statement(LocalStatement what);  // what it was before
[[noreturn]] void raise_changed_names();

// --- the replay ---
bool replaying();
void begin_replay(const DdlRecord* record);
void end_replay();
// After the statement: what it decided is as on the coordinator; ERROR if the catalogs differ.
void finish_replay(const DdlRecord* record);

}  // namespace gcl
