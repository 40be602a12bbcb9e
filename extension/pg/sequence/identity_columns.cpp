#include "extension/pg/sequence/identity_columns.hpp"

#include "extension/pg/sequence/sequence_file.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "utils/fmgroids.h"
}

namespace gcl {
namespace {

constexpr int kIdentityCall = -0x67636c;  // (pg_sequence.call-without-privilege)

planner_hook_type next_planner = nullptr;

bool names_gcl_sequence(Node* node, void* context) {
  if (node == nullptr) return false;
  if (IsA(node, NextValueExpr)) return is_gcl_sequence(castNode(NextValueExpr, node)->seqid);
  if (IsA(node, Query))
    return query_tree_walker(castNode(Query, node), reinterpret_cast<bool (*)()>(names_gcl_sequence), context, 0);
  return expression_tree_walker(node, reinterpret_cast<bool (*)()>(names_gcl_sequence), context);
}

Node* replace_next_values(Node* node, void* context) {
  if (node == nullptr) return nullptr;
  if (IsA(node, NextValueExpr)) return reinterpret_cast<Node*>(identity_call(castNode(NextValueExpr, node)));
  if (IsA(node, Query))
    return reinterpret_cast<Node*>(
        query_tree_mutator(castNode(Query, node), reinterpret_cast<Node* (*)()>(replace_next_values), context, 0));
  return expression_tree_mutator(node, reinterpret_cast<Node* (*)()>(replace_next_values), context);
}

// NextValueExpr comes from defaults only: of rows that are inserted, merged, or updated to DEFAULT.
bool may_have_next_values(const Query* query) {
  return query->commandType == CMD_INSERT || query->commandType == CMD_UPDATE || query->commandType == CMD_MERGE ||
         query->hasModifyingCTE;
}

PlannedStmt* plan(Query* query, const char* text, int options, ParamListInfo params) {
  if (may_have_next_values(query) && names_gcl_sequence(reinterpret_cast<Node*>(query), nullptr))
    query = castNode(Query, replace_next_values(reinterpret_cast<Node*>(query), nullptr));
  return next_planner ? next_planner(query, text, options, params) : standard_planner(query, text, options, params);
}

}  // namespace

bool is_identity_call(FunctionCallInfo call) {
  const Node* expression = call->flinfo ? call->flinfo->fn_expr : nullptr;
  return expression != nullptr && IsA(expression, FuncExpr) &&
         reinterpret_cast<const FuncExpr*>(expression)->location == kIdentityCall;
}

Expr* identity_call(NextValueExpr* next) {
  if (!is_gcl_sequence(next->seqid)) return reinterpret_cast<Expr*>(next);
  Const* sequence = makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid), ObjectIdGetDatum(next->seqid), false, true);
  FuncExpr* call = makeFuncExpr(F_NEXTVAL, INT8OID, list_make1(sequence), InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
  call->location = kIdentityCall;
  if (next->typeId == INT8OID) return reinterpret_cast<Expr*>(call);
  const Oid cast = next->typeId == INT4OID ? F_INT4_INT8 : F_INT2_INT8;
  return reinterpret_cast<Expr*>(
      makeFuncExpr(cast, next->typeId, list_make1(call), InvalidOid, InvalidOid, COERCE_IMPLICIT_CAST));
}

void install_identity_column_hook() {
  next_planner = planner_hook;
  planner_hook = plan;
}

}  // namespace gcl
