// Statements that make and alter tables and indexes.
#pragma once

#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

// Whether a table with that access method, or with the default one if null, would be a gcl table.
bool names_gcl(const char* method);
bool is_temporary(const RangeVar* name);
// 42704, with what to do, for a statement that would make a gcl table in a database without the extension.
void require_method(const Node* statement);
// Locks of an index or a table are taken on the table.
Oid table_of(Oid relation);

// May raise; take no locks.
DdlPlan plan_create_table(const CreateStmt* statement);
DdlPlan plan_create_table_as(const CreateTableAsStmt* statement);
DdlPlan plan_index(const IndexStmt* statement);
DdlPlan plan_alter(const AlterTableStmt* statement);

}  // namespace gcl
