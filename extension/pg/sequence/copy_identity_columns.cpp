#include "extension/pg/sequence/copy_identity_columns.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/sequence/identity_columns.hpp"

extern "C" {
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_authid.h"
#include "commands/copy.h"
#include "commands/copyfrom_internal.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "utils/acl.h"
#include "utils/rls.h"
}

namespace gcl {
namespace {

bool names(const List* columns, const char* name) {
  ListCell* cell;
  foreach (cell, columns)
    if (strcmp(strVal(lfirst(cell)), name) == 0) return true;
  return false;
}

void check_source(const CopyStmt* statement) {
  if (!statement->filename) return;
  const Oid role = statement->is_program ? ROLE_PG_EXECUTE_SERVER_PROGRAM : ROLE_PG_READ_SERVER_FILES;
  if (has_privs_of_role(GetUserId(), role)) return;
  ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
          errmsg("must be superuser or have privileges of the %s role to COPY from %s",
                 statement->is_program ? "pg_execute_server_program" : "pg_read_server_files",
                 statement->is_program ? "an external program" : "a file"),
          errhint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."));
}

void check_target(ParseState* state, RangeTblEntry* entry, Relation table, List* columns) {
  ListCell* cell;
  foreach (cell, CopyGetAttnums(RelationGetDescr(table), table, columns))
    entry->insertedCols = bms_add_member(entry->insertedCols, lfirst_int(cell) - FirstLowInvalidHeapAttributeNumber);
  entry->requiredPerms = ACL_INSERT;
  (void)ExecCheckRTPerms(state->p_rtable, true);
  if (check_enable_rls(entry->relid, InvalidOid, false) == RLS_ENABLED)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("COPY FROM not supported with row-level security"),
            errhint("Use INSERT statements instead."));
  PreventCommandIfReadOnly("COPY FROM");
}

Node* condition(ParseState* state, ParseNamespaceItem* table, Node* clause) {
  if (!clause) return nullptr;
  addNSItemToQuery(state, table, false, true, true);
  clause = transformExpr(state, clause, EXPR_KIND_COPY_WHERE);
  clause = coerce_to_boolean(state, clause, "WHERE");
  assign_expr_collations(state, clause);
  clause = eval_const_expressions(nullptr, clause);
  clause = reinterpret_cast<Node*>(canonicalize_qual(reinterpret_cast<Expr*>(clause), false));
  return reinterpret_cast<Node*>(make_ands_implicit(reinterpret_cast<Expr*>(clause)));
}

void replace_defaults(CopyFromState copy, Relation table) {
  for (int i = 0; i < copy->num_defaults; ++i) {
    const Form_pg_attribute column = TupleDescAttr(RelationGetDescr(table), copy->defmap[i]);
    if (!column->attidentity) continue;
    auto* next = makeNode(NextValueExpr);
    next->seqid = getIdentitySequence(RelationGetRelid(table), column->attnum, false);
    next->typeId = column->atttypid;
    copy->defexprs[i] = ExecInitExpr(expression_planner(identity_call(next)), nullptr);
  }
}

}  // namespace

bool copies_into_identity_column(const Node* statement) {
  if (!IsA(statement, CopyStmt)) return false;
  const auto* copy = reinterpret_cast<const CopyStmt*>(statement);
  if (!copy->is_from || !copy->relation || !is_shared_table(find_relation(copy->relation))) return false;
  Relation table = table_openrv(copy->relation, RowExclusiveLock);
  bool left_out = false;
  for (int i = 0; i < RelationGetDescr(table)->natts && copy->attlist != NIL; ++i) {
    const Form_pg_attribute column = TupleDescAttr(RelationGetDescr(table), i);
    left_out |= !column->attisdropped && column->attidentity && !names(copy->attlist, NameStr(column->attname));
  }
  table_close(table, NoLock);
  return left_out;
}

uint64 copy_into_identity_column(PlannedStmt* planned, const char* text) {
  const auto* statement = castNode(CopyStmt, planned->utilityStmt);
  ParseState* state = make_parsestate(nullptr);
  state->p_sourcetext = text;
  check_source(statement);
  Relation table = table_openrv(statement->relation, RowExclusiveLock);
  ParseNamespaceItem* item = addRangeTableEntryForRelation(state, table, RowExclusiveLock, nullptr, false, false);
  Node* where = condition(state, item, static_cast<Node*>(copyObjectImpl(statement->whereClause)));
  check_target(state, item->p_rte, table, statement->attlist);
  CopyFromState copy = BeginCopyFrom(state, table, where, statement->filename, statement->is_program, nullptr,
                                     statement->attlist, statement->options);
  replace_defaults(copy, table);
  const uint64 rows = CopyFrom(copy);
  EndCopyFrom(copy);
  table_close(table, NoLock);
  free_parsestate(state);
  return rows;
}

}  // namespace gcl
