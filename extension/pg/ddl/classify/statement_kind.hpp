// What is known of each kind of statement: one row, of all that is decided by the kind of node.  A statement without a
// row is this primary's own.  The rows are in ddl_scope.cpp, object_scope.cpp and, for roles and databases,
// cluster_scope.cpp.
#pragma once

#include <span>

#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

// What a statement that was taken for local is asked when it has run, and its names are locked.
enum class AskedAgain : uint8_t {
  kNothing,
  kNames,  // it leaves them as they were, and they may have come to mean what is shared (ddl.names-decide-unlocked)
  kTies,   // it may have tied an object to something local, or untied it; its plan says what it was (was_shared)
};

struct StatementKind {
  NodeTag tag;
  DdlPlan (*plan)(Node*);                     // may raise
  bool (*has_rights)(const Node*) = nullptr;  // rights.hpp; null: what it locks the server locks for every user
  AskedAgain asked_again = AskedAgain::kNothing;
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
