// The OIDs that a statement took on its coordinator, handed to PostgreSQL in the same order while it is replayed
// (ddl.oids-in-order).
//
//     open_oid_queue(record);                // hands out what may be taken at once
//     take_oid(catalog, oid);                // an object has been made here: it has to be the one at the front
//     ...
//     finish_oid_queue();                    // nothing is left
//     close_oid_queue();                     // also after an ERROR
//     set_other_oids();                      // when the statement and what it made is seen
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

void open_oid_queue(const DdlRecord* record);  // in the current memory context, until the next one is opened
void take_oid(Oid catalog, Oid oid);
bool take_toast_oid(Oid table);    // whether the table gets a TOAST relation now; if so its OID is handed out
void note_relation_drop(Oid oid);  // the statement has dropped a relation
void finish_oid_queue();
void close_oid_queue();

// What PostgreSQL has no variable for gets the coordinator's OID now (ddl.oids-set-afterwards).
void set_other_oids();

}  // namespace gcl
