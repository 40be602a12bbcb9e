#include "extension/pg/ddl/classify/ddl_scope.hpp"

#include "coherence/base/verify.hpp"
#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/cluster_scope.hpp"
#include "extension/pg/ddl/classify/foreign_keys.hpp"
#include "extension/pg/ddl/classify/object_scope.hpp"
#include "extension/pg/ddl/classify/partitions.hpp"
#include "extension/pg/ddl/classify/role_scope.hpp"
#include "extension/pg/ddl/classify/sequence_scope.hpp"
#include "extension/pg/ddl/classify/table_scope.hpp"
#include "extension/pg/ddl/objects/shared_or_local.hpp"

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
    return plan_for_all(statement->removeType, statement->objects);
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
  if (!statement->relation) return plan_for(statement->renameType, statement->object);
  const Oid relation = find_relation(statement->relation);
  if (!OidIsValid(relation) || !is_cluster_relation(relation)) return local();
  return on_shared(everywhere_on(table_of(relation), AccessExclusiveLock));
}

// ON ALL TABLES IN SCHEMA means those of each primary.
DdlPlan plan_grant(const GrantStmt* statement) {
  if (statement->targtype != ACL_TARGET_OBJECT) return everywhere();
  if (statement->objtype != OBJECT_TABLE) return plan_for_all(statement->objtype, statement->objects);
  return plan_names(statement->objects, AccessShareLock);
}

// On a gcl table, or on a view that every primary has.
DdlPlan plan_on(const RangeVar* name, LOCKMODE mode) {
  const Oid relation = find_relation(name);
  return OidIsValid(relation) && is_cluster_relation(relation) ? on_shared(everywhere_on(relation, mode)) : local();
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

DdlPlan plan_extension(const CreateExtensionStmt* statement) {
  const bool ours = strcmp(statement->extname, kExtensionName) == 0;
  return ours && !OidIsValid(gcl_access_method()) ? everywhere() : local();  // else IF NOT EXISTS, or an error
}

DdlPlan plan_foreign_table(const CreateForeignTableStmt* statement) {
  (void)makes_shared_table(&statement->base, false);
  return local();
}

DdlPlan plan_schema(const CreateSchemaStmt*) {
  DdlPlan plan = everywhere();
  plan.partitioned = names_gcl(nullptr);
  return plan;
}

DdlPlan plan_object_schema(const AlterObjectSchemaStmt* statement) {
  if (statement->objectType == OBJECT_EXTENSION && strcmp(strVal(statement->object), kExtensionName) == 0)
    refuse_ddl("ALTER EXTENSION gcl", "Create it in that schema.");
  if (statement->relation) return plan_on(statement->relation, AccessExclusiveLock);
  return plan_for(statement->objectType, statement->object);
}

DdlPlan plan_trigger(const CreateTrigStmt* statement) { return plan_on(statement->relation, ShareRowExclusiveLock); }

DdlPlan plan_rule(const RuleStmt* statement) {
  if (statement->event == CMD_SELECT) refuse_if_shared(statement->relation, "turning a table into a view");
  return plan_on(statement->relation, AccessExclusiveLock);
}

DdlPlan plan_policy(const CreatePolicyStmt* statement) { return plan_on(statement->table, AccessExclusiveLock); }
DdlPlan plan_alter_policy(const AlterPolicyStmt* statement) { return plan_on(statement->table, AccessExclusiveLock); }

DdlPlan plan_cluster(const ClusterStmt* statement) {
  if (statement->relation) refuse_if_shared(statement->relation, "CLUSTER");
  return local();
}

DdlPlan plan_alter_extension(const AlterExtensionStmt* statement) {
  return strcmp(statement->extname, kExtensionName) == 0 ? everywhere() : local();
}

constexpr StatementPlanner kPlanners[] = {
    {T_AlterExtensionStmt, planned_by<plan_alter_extension>},
    {T_AlterObjectSchemaStmt, planned_by<plan_object_schema>},
    {T_AlterPolicyStmt, planned_by<plan_alter_policy>},
    {T_AlterSeqStmt, planned_by<plan_alter_sequence>},
    {T_AlterTableStmt, planned_by<plan_alter>},
    {T_ClusterStmt, planned_by<plan_cluster>},
    {T_CreateExtensionStmt, planned_by<plan_extension>},
    {T_CreateForeignTableStmt, planned_by<plan_foreign_table>},
    {T_CreatePolicyStmt, planned_by<plan_policy>},
    {T_CreateSchemaStmt, planned_by<plan_schema>},
    {T_CreateSeqStmt, planned_by<plan_create_sequence>},
    {T_CreateStmt, planned_by<plan_create_table>},
    {T_CreateTableAsStmt, planned_by<plan_create_table_as>},
    {T_CreateTrigStmt, planned_by<plan_trigger>},
    {T_DropOwnedStmt, planned_by<plan_drop_owned>},
    {T_DropStmt, planned_by<plan_drop>},
    {T_GrantStmt, planned_by<plan_grant>},
    {T_IndexStmt, planned_by<plan_index>},
    {T_LockStmt, planned_here},  // concerns us, and is no DDL
    {T_ReassignOwnedStmt, planned_by<plan_reassign_owned>},
    {T_ReindexStmt, planned_by<plan_reindex>},
    {T_RenameStmt, planned_by<plan_rename>},
    {T_RuleStmt, planned_by<plan_rule>},
    {T_TruncateStmt, planned_by<plan_truncate>},
    {T_VacuumStmt, planned_by<plan_vacuum>},
};

// The rows by their tags: every utility statement looks for its own.
class Planners {
 public:
  Planners() {
    add(kPlanners);
    add(object_planners());
  }
  auto of(NodeTag tag) const { return uint64_t(tag) < kTags ? by_tag_[tag] : nullptr; }

 private:
  static constexpr uint64_t kTags = 1024;  // those of PostgreSQL 15 are below 600

  void add(std::span<const StatementPlanner> rows) {
    for (const StatementPlanner& row : rows) {
      VERIFY(uint64_t(row.tag) < kTags && by_tag_[row.tag] == nullptr);
      by_tag_[row.tag] = row.plan;
    }
  }

  decltype(StatementPlanner::plan) by_tag_[kTags] = {};
};

auto planner_of(const Node* statement) {
  static const Planners planners;
  return planners.of(nodeTag(statement));
}

DdlPlan plan_statement(Node* statement) {
  if (is_of_cluster(statement)) return plan_of_cluster(statement);
  const auto plan = planner_of(statement);
  if (!plan || (!OidIsValid(gcl_access_method()) && !IsA(statement, CreateExtensionStmt))) return local();
  return plan(statement);
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

bool may_concern_us(const Node* statement) { return planner_of(statement) != nullptr || is_of_cluster(statement); }

DdlPlan plan_ddl(Node* statement) {
  DdlPlan plan;
  uint64 invalidations;
  do {
    CHECK_FOR_INTERRUPTS();
    invalidations = SharedInvalidMessageCounter;
    begin_names();
    plan = plan_statement(statement);
  } while (invalidations != SharedInvalidMessageCounter);
  if (names_met_what_has_gone()) return {DdlScope::kUnknown, NIL, false};
  if (plan.scope == DdlScope::kCluster) add_descendants(&plan);
  return plan;
}

}  // namespace gcl
