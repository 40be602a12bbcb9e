// REASSIGN OWNED and DROP OWNED, which are about one database's objects of a role.  In a database with the extension
// each primary does it with what it has there; elsewhere the statement stays here, and says so.
#pragma once

#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

bool is_owned(NodeTag tag);
// REQUIRES: is_owned().  May raise.
DdlPlan plan_owned(const Node* statement);
void note_owned_stays_here(const Node* statement);

}  // namespace gcl
