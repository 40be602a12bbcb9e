// LOCK TABLE on gcl tables: what conflicts with a writer is locked on every primary.
#pragma once

#include "extension/pg/ddl/pg.hpp"

extern "C" {
#include "nodes/parsenodes.h"
}

namespace gcl {

// Before the statement runs here: has all other primaries lock what it names, if that is shared and the mode is one
// that a statement there could not notice otherwise (stronger than ROW EXCLUSIVE).  Waits and raises as LOCK TABLE
// does.  False: there is nothing of that kind.
bool lock_table_everywhere(const LockStmt* statement);

// Whether it is such a statement, as its names are now.
bool names_shared_tables(const LockStmt* statement);

}  // namespace gcl
