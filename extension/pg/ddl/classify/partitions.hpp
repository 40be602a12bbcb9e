// Partitioned tables and inheritance.  A partitioned table has no rows: it is every primary's if it was made while
// default_table_access_method was gcl, or as a partition of such a one; pg_class.relam says so.  All tables of one
// tree are every primary's, or none is.
#pragma once

#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

// Whether the table that the statement makes belongs to all; raises if its parents do not agree.
bool makes_shared_table(const CreateStmt* statement, bool names_gcl);

// The table that ALTER TABLE attaches, detaches or inherits from; null: none that exists.
const RangeVar* other_table(const AlterTableCmd* command);
bool changes_tree(const AlterTableStmt* statement);  // foreign keys come and go with it

// What ALTER TABLE attaches must be of the tree's kind.
void check_attached(const AlterTableCmd* command, bool shared);

// All tables below the targets, in an order that is the same everywhere, with the same modes.
void add_descendants(DdlPlan* plan);
// The first target and the tables below it.
List* tables_with_columns(const DdlPlan& plan);

// The partitioned tables among `made` (OIDs) become every primary's.
void mark_partitioned(const List* made);

}  // namespace gcl
