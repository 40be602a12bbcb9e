// Catching up from the cluster's DDL log.
#pragma once

#include "extension/engine/ddl/ddl_log.hpp"
#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// Runs, in order, what other primaries committed in this database and this one has not applied; stops before a
// transaction that is still running.  An ERROR leaves all earlier ones applied.  REQUIRES: not in a transaction.
// `history`: the name of this database, or "": what belongs to none.  `until`: number of the last entry that is wanted;
// 0: all.
void apply_log(const char* history, uint64_t until = 0);
// Whose position is kept in which file.
inline Oid position_of(const char* history) { return *history == '\0' ? InvalidOid : MyDatabaseId; }

struct DdlStep {
  char* database;
  uint64_t until;  // as apply_log() wants it
};

// How to catch up with all databases the log speaks of (DdlStep*).  Each has a history of its own, but roles are in
// all: what concerns roles comes after everything that is older in any database, and before everything that is newer.
List* steps_to_catch_up();

}  // namespace gcl
