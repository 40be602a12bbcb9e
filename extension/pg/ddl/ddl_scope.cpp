#include "extension/pg/ddl/ddl_scope.hpp"

#include "extension/pg/ddl/foreign_keys.hpp"
#include "extension/pg/ddl/locality.hpp"
#include "extension/pg/ddl/object_scope.hpp"
#include "extension/pg/ddl/partitions.hpp"
#include "extension/pg/ddl/role_scope.hpp"
#include "extension/pg/ddl/sequence_scope.hpp"

extern "C" {
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "storage/sinval.h"
#include "utils/lsyscache.h"
}

namespace gcl {
namespace {

constexpr const char* kName = "gcl";

DdlPlan local() { return {DdlScope::kLocal, NIL, false}; }

void add_target(DdlPlan* plan, Oid relation, LOCKMODE mode) {
  auto* target = static_cast<DdlTarget*>(palloc(sizeof(DdlTarget)));
  *target = {relation, mode};
  plan->targets = lappend(plan->targets, target);
}

DdlPlan cluster_on(Oid relation, LOCKMODE mode) {
  DdlPlan plan{DdlScope::kCluster, NIL, false};
  add_target(&plan, relation, mode);
  return plan;
}

bool names_gcl(const char* method) { return strcmp(method ? method : default_table_access_method, kName) == 0; }

bool is_temporary(const RangeVar* name) {
  return name->relpersistence == RELPERSISTENCE_TEMP || (name->schemaname && strcmp(name->schemaname, "pg_temp") == 0);
}

// Locks of an index or a table are taken on the table.
Oid table_of(Oid relation) {
  const Oid table = IndexGetRelation(relation, true);
  return OidIsValid(table) ? table : relation;
}

void check_constraint(const Constraint* constraint, bool shared) {
  check_foreign_key(constraint, shared);
  if (!shared) return;
  if (constraint->contype == CONSTR_EXCLUSION) refuse_ddl("EXCLUDE");
}

void check_column(const ColumnDef* column, bool shared) {
  ListCell* cell;
  foreach (cell, column->constraints) check_constraint(lfirst_node(Constraint, cell), shared);
}

void add_referenced_by(DdlPlan* plan, const ColumnDef* column) {
  ListCell* cell;
  foreach (cell, column->constraints) add_referenced(plan, lfirst_node(Constraint, cell));
}

DdlPlan plan_create_table(const CreateStmt* statement) {
  const bool temporary = is_temporary(statement->relation);
  const bool shared = !temporary && makes_shared_table(statement, names_gcl(statement->accessMethod));
  ListCell* cell;
  foreach (cell, statement->tableElts) {
    auto* element = static_cast<Node*>(lfirst(cell));
    if (IsA(element, ColumnDef)) check_column(castNode(ColumnDef, element), shared);
    if (IsA(element, Constraint)) check_constraint(castNode(Constraint, element), shared);
  }
  foreach (cell, statement->constraints) check_constraint(lfirst_node(Constraint, cell), shared);
  foreach (cell, statement->inhRelations)
    if (temporary && is_shared_table(find_relation(lfirst_node(RangeVar, cell)))) refuse_ddl("TEMPORARY");
  if (temporary && statement->accessMethod && names_gcl(statement->accessMethod))
    refuse_ddl("TEMPORARY", "Temporary tables are heap tables.");
  if (!shared) return local();
  if (statement->relation->relpersistence == RELPERSISTENCE_UNLOGGED) refuse_ddl("UNLOGGED");
  if (statement->ofTypename) refuse_ddl("CREATE TABLE OF");
  DdlPlan plan{DdlScope::kCluster, NIL, false};
  plan.partitioned = true;
  foreach (cell, statement->inhRelations)
    if (const Oid parent = find_relation(lfirst_node(RangeVar, cell)); OidIsValid(parent))
      add_target(&plan, parent, AccessExclusiveLock);
  foreach (cell, statement->tableElts) {
    auto* element = static_cast<Node*>(lfirst(cell));
    if (IsA(element, ColumnDef)) add_referenced_by(&plan, castNode(ColumnDef, element));
    if (IsA(element, Constraint)) add_referenced(&plan, castNode(Constraint, element));
  }
  foreach (cell, statement->constraints) add_referenced(&plan, lfirst_node(Constraint, cell));
  return plan;
}

DdlPlan plan_create_table_as(const CreateTableAsStmt* statement) {
  if (is_temporary(statement->into->rel)) return local();
  if (!names_gcl(statement->into->accessMethod)) return local();
  if (statement->objtype == OBJECT_MATVIEW) refuse_ddl("MATERIALIZED VIEW", "Add USING heap.");
  if (statement->into->rel->relpersistence == RELPERSISTENCE_UNLOGGED) refuse_ddl("UNLOGGED");
  const auto* query = reinterpret_cast<const Query*>(statement->query);
  if (IsA(query, Query) && query->commandType == CMD_UTILITY)
    refuse_ddl("CREATE TABLE AS EXECUTE", "Create the table, then INSERT; or add USING heap.");
  return {DdlScope::kCluster, NIL, false};
}

DdlPlan plan_index(const IndexStmt* statement) {
  const Oid table = find_relation(statement->relation);
  if (!is_shared_table(table)) return local();
  if (statement->concurrent) refuse_ddl("CREATE INDEX CONCURRENTLY");
  if (statement->accessMethod && strcmp(statement->accessMethod, "btree") != 0) refuse_ddl("indexes other than btree");
  return cluster_on(table, ShareLock);
}

void check_alter_local(const AlterTableCmd* command) {
  switch (command->subtype) {
    case AT_AddConstraint:
      check_constraint(castNode(Constraint, command->def), false);
      break;
    case AT_AddColumn:
      check_column(castNode(ColumnDef, command->def), false);
      break;
    case AT_SetAccessMethod:
      if (names_gcl(command->name)) refuse_ddl("SET ACCESS METHOD gcl");
      break;
    case AT_AddInherit:
    case AT_AttachPartition:
    case AT_DetachPartition:
      check_attached(command, false);
      break;
    default:
      break;
  }
}

void check_alter_shared(const AlterTableCmd* command) {
  switch (command->subtype) {
    case AT_AddConstraint:
      return check_constraint(castNode(Constraint, command->def), true);
    case AT_AddColumn:
      return check_column(castNode(ColumnDef, command->def), true);
    case AT_AddInherit:
    case AT_DropInherit:
    case AT_AttachPartition:
    case AT_DetachPartition:
      return check_attached(command, true);
    case AT_DropConstraint:
    case AT_AlterConstraint:
    case AT_ValidateConstraint:
    case AT_DropColumn:
    case AT_ColumnDefault:
    case AT_SetNotNull:
    case AT_DropNotNull:
    case AT_DropExpression:
    case AT_AlterColumnType:
    case AT_SetStatistics:
    case AT_SetOptions:
    case AT_ResetOptions:
    case AT_SetStorage:
    case AT_SetCompression:
    case AT_SetRelOptions:
    case AT_ResetRelOptions:
    case AT_ChangeOwner:
    case AT_EnableTrig:
    case AT_EnableAlwaysTrig:
    case AT_EnableReplicaTrig:
    case AT_DisableTrig:
    case AT_EnableTrigAll:
    case AT_DisableTrigAll:
    case AT_EnableTrigUser:
    case AT_DisableTrigUser:
    case AT_EnableRule:
    case AT_EnableAlwaysRule:
    case AT_EnableReplicaRule:
    case AT_DisableRule:
    case AT_EnableRowSecurity:
    case AT_DisableRowSecurity:
    case AT_ForceRowSecurity:
    case AT_NoForceRowSecurity:
    case AT_ReplicaIdentity:
    case AT_AddIdentity:
    case AT_SetIdentity:
    case AT_DropIdentity:
      return;
    default:
      refuse_ddl("this form of ALTER TABLE");
  }
}

bool changes_columns(const AlterTableStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->cmds) {
    const AlterTableType form = lfirst_node(AlterTableCmd, cell)->subtype;
    if (form == AT_AddColumn || form == AT_AlterColumnType) return true;
  }
  return false;
}

// Constraints that there are already may go, or be made anew.
bool touches_constraints(const AlterTableStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->cmds) {
    const AlterTableType form = lfirst_node(AlterTableCmd, cell)->subtype;
    if (form == AT_DropConstraint || form == AT_AlterConstraint || form == AT_ValidateConstraint ||
        form == AT_DropColumn || form == AT_AlterColumnType)
      return true;
  }
  return false;
}

DdlPlan plan_alter(const AlterTableStmt* statement) {
  const Oid relation = find_relation(statement->relation);
  const bool shared = OidIsValid(relation) && is_shared_relation(relation);
  ListCell* cell;
  foreach (cell, statement->cmds) {
    const auto* command = lfirst_node(AlterTableCmd, cell);
    if (shared)
      check_alter_shared(command);
    else
      check_alter_local(command);
  }
  if (!shared && (!OidIsValid(relation) || !is_cluster_relation(relation))) return local();
  DdlPlan plan = cluster_on(table_of(relation), AccessExclusiveLock);
  plan.changes_columns = changes_columns(statement);
  foreach (cell, statement->cmds) {
    const auto* command = lfirst_node(AlterTableCmd, cell);
    if (command->subtype == AT_AddConstraint) add_referenced(&plan, castNode(Constraint, command->def));
    if (command->subtype == AT_AddColumn) add_referenced_by(&plan, castNode(ColumnDef, command->def));
    if (const RangeVar* other = other_table(command))
      add_target(&plan, table_of(find_relation(other)), AccessExclusiveLock);
  }
  add_descendants(&plan);
  if (touches_constraints(statement) || changes_tree(statement)) add_neighbours(&plan, AccessExclusiveLock, false);
  add_altered_identities(&plan, statement);
  return plan;
}

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
  DdlPlan plan_{DdlScope::kCluster, NIL, false};
  bool has_local_ = false;
  bool has_views_ = false;
};

DdlPlan on_tables(List* tables, LOCKMODE mode) {
  DdlPlan plan{DdlScope::kCluster, NIL, false};
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
      if (strcmp(strVal(lfirst(cell)), kName) == 0)
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
  if (statement->renameType == OBJECT_SCHEMA) return {DdlScope::kCluster, NIL, false};
  if (!statement->relation) return plan_object(reinterpret_cast<const Node*>(statement));
  const Oid relation = find_relation(statement->relation);
  if (!OidIsValid(relation) || !is_cluster_relation(relation)) return local();
  return cluster_on(table_of(relation), AccessExclusiveLock);
}

// ON ALL TABLES IN SCHEMA means those of each primary.
DdlPlan plan_grant(const GrantStmt* statement) {
  if (statement->targtype != ACL_TARGET_OBJECT) return {DdlScope::kCluster, NIL, false};
  if (statement->objtype != OBJECT_TABLE) return plan_object(reinterpret_cast<const Node*>(statement));
  return plan_names(statement->objects, AccessShareLock);
}

// On a gcl table, or on a view that every primary has.
DdlPlan plan_on(const RangeVar* name, LOCKMODE mode) {
  const Oid relation = find_relation(name);
  return OidIsValid(relation) && is_cluster_relation(relation) ? cluster_on(relation, mode) : local();
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

}  // namespace

void refuse_ddl(const char* what, const char* hint) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("%s: not supported for gcl tables yet", what),
                  errhint("%s", hint ? hint : "A heap table (USING heap), local to its primary, can have it.")));
  pg_unreachable();
}

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
    case T_CreatedbStmt:
    case T_DropdbStmt:
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
    case T_AlterExtensionStmt:
    case T_AlterPolicyStmt:
      return true;
    default:
      return may_be_role(nodeTag(statement)) || may_be_object(nodeTag(statement));
  }
}

static DdlPlan plan_statement(Node* statement) {
  if (!may_concern_us(statement)) return local();
  if (IsA(statement, CreateExtensionStmt)) {
    const bool ours = strcmp(castNode(CreateExtensionStmt, statement)->extname, kName) == 0;
    return ours ? DdlPlan{DdlScope::kCluster, NIL, false} : local();
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
      DdlPlan plan{DdlScope::kCluster, NIL, false};
      plan.partitioned = names_gcl(nullptr);
      return plan;
    }
    case T_RenameStmt:
      return plan_rename(castNode(RenameStmt, statement));
    case T_GrantStmt:
      return plan_grant(castNode(GrantStmt, statement));
    case T_AlterObjectSchemaStmt:
      if (castNode(AlterObjectSchemaStmt, statement)->objectType == OBJECT_EXTENSION &&
          strcmp(strVal(castNode(AlterObjectSchemaStmt, statement)->object), kName) == 0)
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
    case T_AlterExtensionStmt:
      if (strcmp(castNode(AlterExtensionStmt, statement)->extname, kName) == 0) refuse_ddl("ALTER EXTENSION gcl");
      return local();
    default:
      return may_be_role(nodeTag(statement)) ? plan_role(statement) : plan_object(statement);
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
