// Statements on roles.  Roles belong to no database; in one with the extension they are made, altered and dropped on
// all primaries, with one OID; elsewhere they stay here.
#pragma once

#include "extension/pg/ddl/ddl_plan.hpp"

namespace gcl {

bool may_be_role(NodeTag tag);
// REQUIRES: may_be_role().  May raise.
DdlPlan plan_role(const Node* statement);

}  // namespace gcl
