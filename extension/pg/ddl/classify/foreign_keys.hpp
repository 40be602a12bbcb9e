// Foreign keys between gcl tables: a statement on one table locks, and changes the triggers of, those at the other end.
#pragma once

#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

// Raises if the constraint would lead from a gcl table to a local one, or the other way.  `shared`: its table is gcl.
void check_foreign_key(const Constraint* constraint, bool shared);

// The table a new constraint refers to; what else it is, is no matter.
void add_referenced(DdlPlan* plan, const Constraint* constraint);

// The tables at the other ends of the targets' foreign keys; `all`: theirs, too, and so on.
void add_neighbours(DdlPlan* plan, LOCKMODE mode, bool all);

}  // namespace gcl
