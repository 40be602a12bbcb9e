// LOCK TABLE on gcl tables: what conflicts with a writer is locked on every primary.
#pragma once

#include "extension/pg/ddl/pg.hpp"

extern "C" {
#include "nodes/parsenodes.h"
}

namespace gcl {

// Before the statement runs here: has all other primaries lock what it names, if that is shared and the mode is one
// that a statement there could not notice otherwise (stronger than ROW EXCLUSIVE).  Waits and raises as LOCK TABLE
// does.
void lock_table_everywhere(const LockStmt* statement);

}  // namespace gcl
