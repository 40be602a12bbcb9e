#include "extension/pg/ddl/replay/stand_ins.hpp"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/primnodes.h"
}

namespace gcl {

Node* is_null(Node* expression) {
  auto* test = makeNode(NullTest);
  test->arg = reinterpret_cast<Expr*>(expression);
  test->nulltesttype = IS_NULL;
  test->location = -1;
  return reinterpret_cast<Node*>(test);
}

Node* case_when(Node* condition, Node* result, Node* otherwise) {
  auto* when = makeNode(CaseWhen);
  when->expr = reinterpret_cast<Expr*>(condition);
  when->result = reinterpret_cast<Expr*>(result);
  when->location = -1;
  auto* either = makeNode(CaseExpr);
  either->args = list_make1(when);
  either->defresult = reinterpret_cast<Expr*>(otherwise);
  either->location = -1;
  return reinterpret_cast<Node*>(either);
}

}  // namespace gcl
