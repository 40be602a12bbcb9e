// REASSIGN OWNED and DROP OWNED, which are about one database's objects of a role.  In a database with the extension
// each primary does it with what it has there; elsewhere the statement stays here, and says so.
#pragma once

#include "extension/pg/ddl/classify/statement_kind.hpp"

namespace gcl {

DdlPlan plan_reassign_owned(const ReassignOwnedStmt* statement);
DdlPlan plan_drop_owned(const DropOwnedStmt* statement);
void note_owned_stays_here(const Node* statement);

}  // namespace gcl
