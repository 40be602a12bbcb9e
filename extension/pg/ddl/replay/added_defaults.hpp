// ADD COLUMN evaluates the default of a column for the rows that there are.  Its coordinator does; a replay says
// another default instead, that has nothing in it to evaluate, and the true one when the column is there
// (ddl.coordinator-ships-constants).
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// List of int: AddedDefault of each ADD COLUMN of the statement, as it was before it ran.  `before`: DdlRelationState*,
// of its tables then, the named one first.
List* added_defaults(const AlterTableStmt* statement, const List* before);

// Changes the statement; SparedDefault*.
List* spare_defaults(AlterTableStmt* statement, const List* added);
// When it has run.  REQUIRES: `tables` are locked.
void tell_true_defaults(const List* spared, const List* tables);

}  // namespace gcl
