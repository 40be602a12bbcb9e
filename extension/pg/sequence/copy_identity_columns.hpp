// COPY into a table of all primaries whose identity column is left to the server: it would evaluate the column's
// default without planning it, on a sequence that is not the server's.  So the statement is run here, as the server
// does, with the calls that identity_columns.hpp has put in place of the defaults.
#pragma once

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
}

namespace gcl {

// Whether `statement` is such a COPY.  Locks its table if it may be.
bool copies_into_identity_column(const Node* statement);
// Rows copied.  REQUIRES: copies_into_identity_column().
uint64 copy_into_identity_column(PlannedStmt* statement, const char* text);

}  // namespace gcl
