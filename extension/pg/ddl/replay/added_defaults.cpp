#include "extension/pg/ddl/replay/added_defaults.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/heap.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_node.h"
#include "parser/parse_type.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

#include "extension/pg/ddl/replay/stand_ins.hpp"

namespace gcl {
namespace {

struct SparedDefault {
  const char* column;
  Node* real;      // as it was parsed; null: it is the one of the column's domain
  Node* stand_in;  // likewise
};

Constraint* constraint_of(const ColumnDef* column, ConstrType type) {
  ListCell* cell;
  foreach (cell, column->constraints)
    if (lfirst_node(Constraint, cell)->contype == type) return lfirst_node(Constraint, cell);
  return nullptr;
}

// The default as it is stored for a column of that type.
Node* cook(const Node* parsed, Oid type, int32 typmod, const char* column) {
  ParseState* state = make_parsestate(nullptr);
  Node* cooked = cookDefault(state, static_cast<Node*>(copyObjectImpl(parsed)), type, typmod, column, '\0');
  free_parsestate(state);
  return cooked;
}

// False: no type, but a word for one (serial).
bool find_type(const TypeName* name, Oid* type, int32* typmod) {
  Type tuple = LookupTypeName(nullptr, name, typmod, true);
  if (!tuple) return false;
  *type = typeTypeId(tuple);
  ReleaseSysCache(tuple);
  return true;
}

bool is_bare_null(const Node* expression) {
  return IsA(expression, Const) && reinterpret_cast<const Const*>(expression)->constisnull;
}

// As the server decides between one value for all rows and one for each.
AddedDefault kind_of_default(const ColumnDef* column) {
  Oid type;
  int32 typmod;
  if (constraint_of(column, CONSTR_GENERATED) || !find_type(column->typeName, &type, &typmod)) return kNoDefault;
  Node* expression = nullptr;
  if (const Constraint* its_own = constraint_of(column, CONSTR_DEFAULT))
    expression = cook(its_own->raw_expr, type, typmod, column->colname);
  else if (get_typtype(type) == TYPTYPE_DOMAIN && !DomainHasConstraints(type))
    expression = get_typdefault(type);
  if (!expression || is_bare_null(expression)) return kNoDefault;
  return contain_volatile_functions_after_planning(reinterpret_cast<Expr*>(expression)) ? kRewritten : kOneValue;
}

Node* null_of(const TypeName* type) {
  auto* null = makeNode(A_Const);
  null->isnull = true;
  null->location = -1;
  auto* cast = makeNode(TypeCast);
  cast->arg = reinterpret_cast<Node*>(null);
  cast->typeName = static_cast<TypeName*>(copyObjectImpl(type));
  cast->location = -1;
  return reinterpret_cast<Node*>(cast);
}

// No constant, for the server would not store it: COALESCE(NULL, NULL).
Node* one_value(const TypeName* type) {
  auto* nothing = makeNode(CoalesceExpr);
  nothing->args = list_make2(null_of(type), null_of(type));
  nothing->location = -1;
  return reinterpret_cast<Node*>(nothing);
}

// CASE WHEN random() IS NULL THEN NULL END: the server rewrites the table, and a replay finds no rows in it.
Node* rewritten(const TypeName* type) {
  auto* random = makeFuncCall(list_make2(makeString(pstrdup("pg_catalog")), makeString(pstrdup("random"))), NIL,
                              COERCE_EXPLICIT_CALL, -1);
  return case_when(is_null(reinterpret_cast<Node*>(random)), null_of(type), nullptr);
}

SparedDefault* spare(ColumnDef* column, AddedDefault kind) {
  Constraint* place = constraint_of(column, CONSTR_DEFAULT);
  if (!place) {
    place = makeNode(Constraint);
    place->contype = CONSTR_DEFAULT;
    place->location = -1;
    column->constraints = lappend(column->constraints, place);
  }
  auto* spared = static_cast<SparedDefault*>(palloc(sizeof(SparedDefault)));
  spared->column = column->colname;
  spared->real = place->raw_expr;
  spared->stand_in = kind == kOneValue ? one_value(column->typeName) : rewritten(column->typeName);
  place->raw_expr = static_cast<Node*>(copyObjectImpl(spared->stand_in));
  return spared;
}

// Null: it has none.
Node* stored_default(Relation relation, AttrNumber column) {
  const TupleConstr* constraints = RelationGetDescr(relation)->constr;
  for (int i = 0; constraints && i < constraints->num_defval; ++i)
    if (constraints->defval[i].adnum == column) return static_cast<Node*>(stringToNode(constraints->defval[i].adbin));
  return nullptr;
}

// The column may have been there before, or have got another default since.
void tell_true_default(const SparedDefault* spared, Oid table) {
  const AttrNumber column = get_attnum(table, spared->column);
  if (column == InvalidAttrNumber) return;
  Relation relation = relation_open(table, NoLock);
  const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), column - 1);
  const Oid type = attribute->atttypid;
  const int32 typmod = attribute->atttypmod;
  const Node* stored = stored_default(relation, column);
  if (stored && equal(stored, cook(spared->stand_in, type, typmod, spared->column))) {
    RemoveAttrDefault(table, column, DROP_RESTRICT, false, true);
    CommandCounterIncrement();
    if (spared->real)
      (void)StoreAttrDefault(relation, column, cook(spared->real, type, typmod, spared->column), true, false);
    CommandCounterIncrement();
  }
  relation_close(relation, NoLock);
}

bool any_can_have_rows(const List* relation_states) {
  ListCell* cell;
  foreach (cell, relation_states)
    if (get_rel_relkind(static_cast<DdlRelationState*>(lfirst(cell))->relation) == RELKIND_RELATION) return true;
  return false;
}

}  // namespace

List* added_defaults(const AlterTableStmt* statement, const List* before) {
  const auto* named = static_cast<DdlRelationState*>(linitial(before));
  const bool any_rows = any_can_have_rows(before);
  List* added = NIL;
  ListCell* cell;
  foreach (cell, statement->cmds) {
    const auto* command = lfirst_node(AlterTableCmd, cell);
    if (command->subtype != AT_AddColumn) continue;
    const auto* column = castNode(ColumnDef, command->def);
    const bool was_there = command->missing_ok && get_attnum(named->relation, column->colname) <= named->natts;
    added = lappend_int(added, was_there || !any_rows ? kNoDefault : kind_of_default(column));
  }
  return added;
}

List* spare_defaults(AlterTableStmt* statement, const List* added) {
  List* spared = NIL;
  int i = 0;
  ListCell* cell;
  foreach (cell, statement->cmds) {
    const auto* command = lfirst_node(AlterTableCmd, cell);
    if (command->subtype != AT_AddColumn) continue;
    if (i >= list_length(added)) elog(ERROR, "gcl: a DDL record lacks what became of a default");
    const auto kind = AddedDefault(list_nth_int(added, i++));
    if (kind != kNoDefault) spared = lappend(spared, spare(castNode(ColumnDef, command->def), kind));
  }
  return spared;
}

void tell_true_defaults(const List* spared, const List* tables) {
  ListCell *of, *at;
  foreach (of, spared)
    foreach (at, tables) tell_true_default(static_cast<SparedDefault*>(lfirst(of)), lfirst_oid(at));
}

}  // namespace gcl
