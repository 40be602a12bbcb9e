// Which function plans a statement: a row for each kind of node.  A statement without a row is this primary's own.
#pragma once

#include <span>

#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

struct StatementPlanner {
  NodeTag tag;
  DdlPlan (*plan)(Node*);  // may raise
};

template <class Statement>
DdlPlan call_planner(DdlPlan (*plan)(const Statement*), Node* statement) {
  return plan(reinterpret_cast<const Statement*>(statement));
}

// {T_ViewStmt, planned_by<plan_view>}: `plan` takes its own kind of statement.
template <auto plan>
DdlPlan planned_by(Node* statement) {
  return call_planner(plan, statement);
}

inline DdlPlan planned_everywhere(Node*) { return everywhere(); }
inline DdlPlan planned_here(Node*) { return local(); }

}  // namespace gcl
