// Statements on what belongs to no database (ddl.roles-of-no-database): roles, and databases as a whole.  They reach
// every primary from any database, or are refused; gcl.local_administration keeps them here.
#pragma once

#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

// Roles, their memberships and settings, privileges on databases and parameters; CREATE, DROP and ALTER DATABASE.
bool is_of_cluster(const Node* statement);
// REQUIRES: is_of_cluster().
DdlPlan plan_of_cluster(const Node* statement);
bool has_rights_of_cluster(const Node* statement);

// Raises, and says what helps, if this primary can reach no other one.
void require_cluster();
// The other primaries read the statement in another database, which may have another encoding.  Raises 0A000.
void require_common_encoding(const char* text);

}  // namespace gcl
