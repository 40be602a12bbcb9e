#include "extension/pg/ddl/replay/partition_keys.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_partitioned_table.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

#include "extension/pg/ddl/replay/stand_ins.hpp"

namespace gcl {
namespace {

struct SparedKey {
  const CreateStmt* table;  // the server gives it its schema, if it is made along with one
  List* expressions;        // as they were parsed
};

const Node* without_collation(const Node* expression) {
  while (IsA(expression, CollateClause)) expression = reinterpret_cast<const CollateClause*>(expression)->arg;
  return expression;
}

bool find_column(Node* expression, ColumnRef** found) {
  if (!expression) return false;
  if (!IsA(expression, ColumnRef))
    return raw_expression_tree_walker(expression, reinterpret_cast<bool (*)()>(find_column), found);
  *found = castNode(ColumnRef, expression);
  return true;
}

// The same value in a form that is never constant: CASE WHEN column IS NULL THEN it ELSE it END.
Node* never_constant(const Node* expression, const ColumnRef* column) {
  return case_when(is_null(static_cast<Node*>(copyObjectImpl(column))), static_cast<Node*>(copyObjectImpl(expression)),
                   static_cast<Node*>(copyObjectImpl(expression)));
}

List* spare_keys_of(List* spared, CreateStmt* table) {
  List* expressions = NIL;
  ListCell* cell;
  foreach (cell, table->partspec ? table->partspec->partParams : NIL) {
    auto* part = lfirst_node(PartitionElem, cell);
    ColumnRef* column = nullptr;
    if (!part->expr || IsA(without_collation(part->expr), ColumnRef)) continue;  // a column, to the server
    expressions = lappend(expressions, part->expr);
    if (find_column(part->expr, &column)) part->expr = never_constant(part->expr, column);
  }
  if (expressions == NIL) return spared;
  auto* key = static_cast<SparedKey*>(palloc(sizeof(SparedKey)));
  *key = {table, expressions};
  return lappend(spared, key);
}

List* cooked(Relation relation, const List* expressions) {
  ParseState* state = make_parsestate(nullptr);
  ParseNamespaceItem* columns = addRangeTableEntryForRelation(state, relation, AccessShareLock, nullptr, false, true);
  addNSItemToQuery(state, columns, true, true, true);
  List* all = NIL;
  ListCell* cell;
  foreach (cell, expressions) {
    Node* one = transformExpr(state, static_cast<Node*>(lfirst(cell)), EXPR_KIND_PARTITION_EXPRESSION);
    assign_expr_collations(state, one);
    while (IsA(one, CollateExpr)) one = reinterpret_cast<Node*>(castNode(CollateExpr, one)->arg);
    all = lappend(all, one);
  }
  free_parsestate(state);
  return all;
}

void store_key(Relation relation, const List* expressions) {
  Relation catalog = table_open(PartitionedRelationId, RowExclusiveLock);
  HeapTuple tuple = SearchSysCacheCopy1(PARTRELID, ObjectIdGetDatum(RelationGetRelid(relation)));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for partition key of %u", RelationGetRelid(relation));
  Datum values[Natts_pg_partitioned_table] = {};
  bool nulls[Natts_pg_partitioned_table] = {}, replaced[Natts_pg_partitioned_table] = {};
  values[Anum_pg_partitioned_table_partexprs - 1] = CStringGetTextDatum(nodeToString(expressions));
  replaced[Anum_pg_partitioned_table_partexprs - 1] = true;
  tuple = heap_modify_tuple(tuple, RelationGetDescr(catalog), values, nulls, replaced);
  CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
  table_close(catalog, RowExclusiveLock);
  CacheInvalidateRelcache(relation);
}

}  // namespace

List* spare_keys(Node* statement) {
  if (IsA(statement, CreateStmt)) return spare_keys_of(NIL, castNode(CreateStmt, statement));
  List* spared = NIL;
  ListCell* cell;
  foreach (cell, IsA(statement, CreateSchemaStmt) ? castNode(CreateSchemaStmt, statement)->schemaElts : NIL)
    if (IsA(lfirst(cell), CreateStmt)) spared = spare_keys_of(spared, lfirst_node(CreateStmt, cell));
  return spared;
}

void tell_true_keys(const List* spared) {
  ListCell* cell;
  foreach (cell, spared) {
    const auto* key = static_cast<SparedKey*>(lfirst(cell));
    Relation relation = table_openrv(key->table->relation, AccessExclusiveLock);
    store_key(relation, cooked(relation, key->expressions));
    table_close(relation, NoLock);
    CommandCounterIncrement();
  }
}

}  // namespace gcl
