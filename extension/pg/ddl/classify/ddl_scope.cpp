#include "extension/pg/ddl/classify/ddl_scope.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/cluster_scope.hpp"
#include "extension/pg/ddl/classify/foreign_keys.hpp"
#include "extension/pg/ddl/classify/object_scope.hpp"
#include "extension/pg/ddl/classify/partitions.hpp"
#include "extension/pg/ddl/classify/role_scope.hpp"
#include "extension/pg/ddl/classify/sequence_scope.hpp"
#include "extension/pg/ddl/classify/table_scope.hpp"
#include "extension/pg/ddl/objects/locality.hpp"

extern "C" {
#include "catalog/namespace.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "storage/sinval.h"
}

namespace gcl {
namespace {

// All names shared, or none: one statement cannot be half local.
class Sorter {
 public:
  void add(Oid relation, LOCKMODE mode) {
    if (!OidIsValid(relation)) return;
    if (is_shared_relation(relation))
      add_target(&plan_, table_of(relation), mode);
    else if (!is_cluster_relation(relation))
      has_local_ = true;
    else
      has_views_ = true;
  }
  DdlPlan plan() {
    if (plan_.targets == NIL && !has_views_) return local();
    if (has_local_) refuse_ddl("one statement on gcl and other tables", "Use a statement for each kind.");
    add_descendants(&plan_);
    return plan_;
  }

 private:
  DdlPlan plan_ = everywhere();
  bool has_local_ = false;
  bool has_views_ = false;
};

DdlPlan on_tables(List* tables, LOCKMODE mode) {
  DdlPlan plan = everywhere();
  ListCell* cell;
  foreach (cell, tables) add_target(&plan, lfirst_oid(cell), mode);
  return plan;
}

DdlPlan plan_drop(const DropStmt* statement) {
  ListCell* cell;
  if (statement->removeType == OBJECT_SCHEMA) {
    List* tables = NIL;
    bool any = false;
    foreach (cell, statement->objects) {
      const Oid schema = get_namespace_oid(strVal(lfirst(cell)), true);
      if (!OidIsValid(schema) || isAnyTempNamespace(schema)) continue;
      any = true;
      tables = list_concat(tables, list_concat(shared_tables(schema), shared_sequences(schema)));
    }
    if (!any) return local();
    DdlPlan plan = on_tables(tables, AccessExclusiveLock);
    add_neighbours(&plan, AccessExclusiveLock, false);
    return plan;
  }
  if (statement->removeType == OBJECT_EXTENSION) {
    foreach (cell, statement->objects)
      if (strcmp(strVal(lfirst(cell)), kExtensionName) == 0)
        return on_tables(list_concat(shared_tables(InvalidOid), shared_sequences(InvalidOid)), AccessExclusiveLock);
    return local();
  }
  if (statement->removeType != OBJECT_TABLE && statement->removeType != OBJECT_INDEX &&
      statement->removeType != OBJECT_VIEW && statement->removeType != OBJECT_SEQUENCE)
    return plan_object(reinterpret_cast<const Node*>(statement));
  Sorter sorter;
  foreach (cell, statement->objects)
    sorter.add(find_relation(makeRangeVarFromNameList(lfirst_node(List, cell))), AccessExclusiveLock);
  DdlPlan plan = sorter.plan();
  if (plan.scope == DdlScope::kCluster && statement->concurrent) refuse_ddl("DROP INDEX CONCURRENTLY");
  if (plan.scope == DdlScope::kCluster) add_neighbours(&plan, AccessExclusiveLock, false);
  if (plan.scope == DdlScope::kCluster) add_owned_sequences(&plan, false);
  return plan;
}

DdlPlan plan_names(List* names, LOCKMODE mode) {
  Sorter sorter;
  ListCell* cell;
  foreach (cell, names) sorter.add(find_relation(lfirst_node(RangeVar, cell)), mode);
  return sorter.plan();
}

DdlPlan plan_truncate(const TruncateStmt* statement) {
  DdlPlan plan = plan_names(statement->relations, AccessExclusiveLock);
  if (plan.scope == DdlScope::kCluster && statement->behavior == DROP_CASCADE)
    add_neighbours(&plan, AccessExclusiveLock, true);
  if (plan.scope == DdlScope::kCluster && statement->restart_seqs) add_owned_sequences(&plan, true);
  return plan;
}

DdlPlan plan_rename(const RenameStmt* statement) {
  if (statement->renameType == OBJECT_SCHEMA) return everywhere();
  if (!statement->relation) return plan_object(reinterpret_cast<const Node*>(statement));
  const Oid relation = find_relation(statement->relation);
  if (!OidIsValid(relation) || !is_cluster_relation(relation)) return local();
  return everywhere_on(table_of(relation), AccessExclusiveLock);
}

// ON ALL TABLES IN SCHEMA means those of each primary.
DdlPlan plan_grant(const GrantStmt* statement) {
  if (statement->targtype != ACL_TARGET_OBJECT) return everywhere();
  if (statement->objtype != OBJECT_TABLE) return plan_object(reinterpret_cast<const Node*>(statement));
  return plan_names(statement->objects, AccessShareLock);
}

// On a gcl table, or on a view that every primary has.
DdlPlan plan_on(const RangeVar* name, LOCKMODE mode) {
  const Oid relation = find_relation(name);
  return OidIsValid(relation) && is_cluster_relation(relation) ? everywhere_on(relation, mode) : local();
}

void refuse_if_shared(const RangeVar* name, const char* what) {
  const Oid relation = find_relation(name);
  if (OidIsValid(relation) && is_shared_relation(relation)) refuse_ddl(what);
}

// CONCURRENTLY would leave half an index behind before it met what cannot be done.
DdlPlan plan_reindex(const ReindexStmt* statement) {
  if (statement->relation) refuse_if_shared(statement->relation, "REINDEX");
  const bool schema = statement->kind == REINDEX_OBJECT_SCHEMA;
  if (!schema && statement->kind != REINDEX_OBJECT_DATABASE) return local();
  const Oid where = schema ? get_namespace_oid(statement->name, true) : InvalidOid;
  if ((!schema || OidIsValid(where)) && shared_tables(where) != NIL)
    refuse_ddl("REINDEX", "Name the local tables, one by one.");
  return local();
}

bool is_vacuum_full(const VacuumStmt* statement) {
  bool full = false;
  ListCell* cell;
  foreach (cell, statement->options) {
    auto* option = lfirst_node(DefElem, cell);
    if (strcmp(option->defname, "full") == 0) full = defGetBoolean(option);
  }
  return full;
}

// Each table is a transaction of its own: what came before the first shared one would stay done.
DdlPlan plan_vacuum(const VacuumStmt* statement) {
  if (!is_vacuum_full(statement)) return local();
  bool shared = statement->rels == NIL && shared_tables(InvalidOid) != NIL;
  ListCell* cell;
  foreach (cell, statement->rels) {
    const RangeVar* name = lfirst_node(VacuumRelation, cell)->relation;
    const Oid relation = name ? find_relation(name) : InvalidOid;
    shared |= OidIsValid(relation) && is_shared_relation(relation);
  }
  if (shared) refuse_ddl("VACUUM FULL", "Use plain VACUUM, or name local tables only.");
  return local();
}

}  // namespace

bool wants_heap_instead(Node* statement) {
  if (!names_gcl(nullptr)) return false;
  if (IsA(statement, CreateStmt)) {
    const auto* create = castNode(CreateStmt, statement);
    return !create->accessMethod && !create->partspec && is_temporary(create->relation);
  }
  if (IsA(statement, CreateTableAsStmt)) {
    const auto* create = castNode(CreateTableAsStmt, statement);
    return !create->into->accessMethod && is_temporary(create->into->rel);
  }
  return false;
}

void use_heap_instead(Node* statement) {
  char* heap = pstrdup("heap");
  if (IsA(statement, CreateStmt)) castNode(CreateStmt, statement)->accessMethod = heap;
  if (IsA(statement, CreateTableAsStmt)) castNode(CreateTableAsStmt, statement)->into->accessMethod = heap;
}

bool may_concern_us(const Node* statement) {
  switch (nodeTag(statement)) {
    case T_CreateExtensionStmt:
    case T_CreateStmt:
    case T_CreateForeignTableStmt:
    case T_CreateTableAsStmt:
    case T_CreateSeqStmt:
    case T_AlterSeqStmt:
    case T_IndexStmt:
    case T_AlterTableStmt:
    case T_DropStmt:
    case T_TruncateStmt:
    case T_CreateSchemaStmt:
    case T_LockStmt:
    case T_RenameStmt:
    case T_GrantStmt:
    case T_AlterObjectSchemaStmt:
    case T_CreateTrigStmt:
    case T_RuleStmt:
    case T_CreatePolicyStmt:
    case T_ClusterStmt:
    case T_ReindexStmt:
    case T_VacuumStmt:
    case T_AlterExtensionStmt:
    case T_AlterPolicyStmt:
      return true;
    default:
      return is_of_cluster(statement) || is_owned(nodeTag(statement)) || may_be_object(nodeTag(statement));
  }
}

static DdlPlan plan_statement(Node* statement) {
  if (!may_concern_us(statement)) return local();
  if (is_of_cluster(statement)) return plan_of_cluster(statement);
  if (IsA(statement, CreateExtensionStmt)) {
    const bool ours = strcmp(castNode(CreateExtensionStmt, statement)->extname, kExtensionName) == 0;
    return ours && !OidIsValid(gcl_access_method()) ? everywhere() : local();  // else IF NOT EXISTS, or an error
  }
  if (!OidIsValid(gcl_access_method())) return local();
  switch (nodeTag(statement)) {
    case T_CreateForeignTableStmt:
      (void)makes_shared_table(&reinterpret_cast<const CreateForeignTableStmt*>(statement)->base, false);
      return local();
    case T_CreateStmt:
      return plan_create_table(castNode(CreateStmt, statement));
    case T_CreateTableAsStmt:
      return plan_create_table_as(castNode(CreateTableAsStmt, statement));
    case T_CreateSeqStmt:
      return plan_create_sequence(castNode(CreateSeqStmt, statement));
    case T_AlterSeqStmt:
      return plan_alter_sequence(castNode(AlterSeqStmt, statement));
    case T_IndexStmt:
      return plan_index(castNode(IndexStmt, statement));
    case T_AlterTableStmt:
      return plan_alter(castNode(AlterTableStmt, statement));
    case T_DropStmt:
      return plan_drop(castNode(DropStmt, statement));
    case T_TruncateStmt:
      return plan_truncate(castNode(TruncateStmt, statement));
    case T_CreateSchemaStmt: {
      DdlPlan plan = everywhere();
      plan.partitioned = names_gcl(nullptr);
      return plan;
    }
    case T_RenameStmt:
      return plan_rename(castNode(RenameStmt, statement));
    case T_GrantStmt:
      return plan_grant(castNode(GrantStmt, statement));
    case T_AlterObjectSchemaStmt:
      if (castNode(AlterObjectSchemaStmt, statement)->objectType == OBJECT_EXTENSION &&
          strcmp(strVal(castNode(AlterObjectSchemaStmt, statement)->object), kExtensionName) == 0)
        refuse_ddl("ALTER EXTENSION gcl", "Create it in that schema.");
      if (castNode(AlterObjectSchemaStmt, statement)->relation)
        return plan_on(castNode(AlterObjectSchemaStmt, statement)->relation, AccessExclusiveLock);
      return plan_object(statement);
    case T_CreateTrigStmt:
      return plan_on(castNode(CreateTrigStmt, statement)->relation, ShareRowExclusiveLock);
    case T_RuleStmt:
      if (castNode(RuleStmt, statement)->event == CMD_SELECT)
        refuse_if_shared(castNode(RuleStmt, statement)->relation, "turning a table into a view");
      return plan_on(castNode(RuleStmt, statement)->relation, AccessExclusiveLock);
    case T_CreatePolicyStmt:
      return plan_on(castNode(CreatePolicyStmt, statement)->table, AccessExclusiveLock);
    case T_AlterPolicyStmt:
      return plan_on(castNode(AlterPolicyStmt, statement)->table, AccessExclusiveLock);
    case T_ClusterStmt:
      if (castNode(ClusterStmt, statement)->relation)
        refuse_if_shared(castNode(ClusterStmt, statement)->relation, "CLUSTER");
      return local();
    case T_ReindexStmt:
      return plan_reindex(castNode(ReindexStmt, statement));
    case T_VacuumStmt:
      return plan_vacuum(castNode(VacuumStmt, statement));
    case T_AlterExtensionStmt:
      if (strcmp(castNode(AlterExtensionStmt, statement)->extname, kExtensionName) == 0)
        refuse_ddl("ALTER EXTENSION gcl");
      return local();
    default:
      return is_owned(nodeTag(statement)) ? plan_owned(statement) : plan_object(statement);
  }
}

DdlPlan plan_ddl(Node* statement) {
  DdlPlan plan;
  uint64 news;
  do {
    CHECK_FOR_INTERRUPTS();
    news = SharedInvalidMessageCounter;
    begin_names();
    plan = plan_statement(statement);
  } while (news != SharedInvalidMessageCounter);
  if (names_met_what_has_gone()) return {DdlScope::kUnknown, NIL, false};
  if (plan.scope == DdlScope::kCluster) add_descendants(&plan);
  return plan;
}

}  // namespace gcl
