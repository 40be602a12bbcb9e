#include "extension/pg/ddl/classify/table_scope.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/foreign_keys.hpp"
#include "extension/pg/ddl/classify/partitions.hpp"
#include "extension/pg/ddl/classify/sequence_scope.hpp"
#include "extension/pg/ddl/objects/shared_or_local.hpp"

extern "C" {
#include "access/tableam.h"
#include "catalog/index.h"
#include "commands/dbcommands.h"
}

namespace gcl {

bool names_gcl(const char* method) {
  return strcmp(method ? method : default_table_access_method, kExtensionName) == 0;
}

bool is_temporary(const RangeVar* name) {
  return name->relpersistence == RELPERSISTENCE_TEMP || (name->schemaname && strcmp(name->schemaname, "pg_temp") == 0);
}

void require_method(const Node* statement) {
  const RangeVar* name;
  const char* method;
  bool if_not_exists;
  if (IsA(statement, CreateStmt)) {
    const auto* create = reinterpret_cast<const CreateStmt*>(statement);
    name = create->relation, method = create->accessMethod, if_not_exists = create->if_not_exists;
  } else if (IsA(statement, CreateTableAsStmt)) {
    const auto* create = reinterpret_cast<const CreateTableAsStmt*>(statement);
    name = create->into->rel, method = create->into->accessMethod, if_not_exists = create->if_not_exists;
  } else {
    return;
  }
  if (!names_gcl(method) || (!method && is_temporary(name)) || OidIsValid(gcl_access_method())) return;
  if (if_not_exists && OidIsValid(find_where_made(name))) return;
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("access method \"gcl\" does not exist"),
                  errdetail("The extension gcl is not in database \"%s\".", get_database_name(MyDatabaseId)),
                  errhint("Use CREATE EXTENSION gcl first, or add USING heap.")));
}

Oid table_of(Oid relation) {
  const Oid table = IndexGetRelation(relation, true);
  return OidIsValid(table) ? table : relation;
}

namespace {

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

}  // namespace

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
  DdlPlan plan = everywhere();
  plan.partitioned = true;
  if (statement->if_not_exists && OidIsValid(find_where_made(statement->relation))) return plan;
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
  return everywhere();
}

DdlPlan plan_index(const IndexStmt* statement) {
  const Oid table = find_relation(statement->relation);
  if (!is_shared_table(table)) return local();
  if (statement->concurrent) refuse_ddl("CREATE INDEX CONCURRENTLY");
  if (statement->accessMethod && strcmp(statement->accessMethod, "btree") != 0) refuse_ddl("indexes other than btree");
  return everywhere_on(table, ShareLock);
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
  DdlPlan plan = on_shared(everywhere_on(table_of(relation), AccessExclusiveLock));
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
  add_altered_identity_columns(&plan, statement);
  return plan;
}

}  // namespace gcl
