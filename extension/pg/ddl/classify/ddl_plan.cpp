#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

void note_plan(DdlRecord* record, const DdlPlan& plan) {
  record->shared = plan.shared;
  record->owned = plan.owned;
  record->to_database = plan.to_database;
  if (plan.database) record->database = pstrdup(plan.database);
}

DdlPlan everywhere_on(Oid relation, LOCKMODE mode) {
  DdlPlan plan = everywhere();
  add_target(&plan, relation, mode);
  return plan;
}

DdlPlan on_shared(DdlPlan plan) {
  plan.was_shared = true;
  return plan;
}

void refuse_ddl(const char* what, const char* hint) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("%s: not supported for gcl tables yet", what),
                  errhint("%s", hint ? hint : "A heap table (USING heap), local to its primary, can have it.")));
  pg_unreachable();
}

List* with_target(List* targets, Oid relation, LOCKMODE mode) {
  auto* target = static_cast<DdlTarget*>(palloc(sizeof(DdlTarget)));
  *target = {relation, mode};
  return lappend(targets, target);
}

bool is_target(const DdlPlan* plan, Oid relation) {
  ListCell* cell;
  foreach (cell, plan->targets)
    if (static_cast<DdlTarget*>(lfirst(cell))->relation == relation) return true;
  return false;
}

void add_target(DdlPlan* plan, Oid relation, LOCKMODE mode) {
  plan->targets = with_target(plan->targets, relation, mode);
}

}  // namespace gcl
