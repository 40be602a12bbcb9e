#include "extension/pg/ddl/classify/ddl_scope.hpp"

#include "coherence/base/verify.hpp"
#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/cluster_scope.hpp"
#include "extension/pg/ddl/classify/foreign_keys.hpp"
#include "extension/pg/ddl/classify/object_scope.hpp"
#include "extension/pg/ddl/classify/partitions.hpp"
#include "extension/pg/ddl/classify/rights.hpp"
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

constexpr StatementKind kKinds[] = {
    {T_AlterExtensionStmt, planned_by<plan_alter_extension>},
    {T_AlterObjectSchemaStmt, planned_by<plan_object_schema>, rights_for<AlterObjectSchemaStmt>},
    {T_AlterPolicyStmt, planned_by<plan_alter_policy>, rights_for<AlterPolicyStmt>, AskedAgain::kNames},
    {T_AlterSeqStmt, planned_by<plan_alter_sequence>, rights_for<AlterSeqStmt>, AskedAgain::kNames},
    {T_AlterTableStmt, planned_by<plan_alter>, rights_for<AlterTableStmt>, AskedAgain::kNames},
    {T_ClusterStmt, planned_by<plan_cluster>},
    {T_CreateExtensionStmt, planned_by<plan_extension>},
    {T_CreateForeignTableStmt, planned_by<plan_foreign_table>},
    {T_CreatePolicyStmt, planned_by<plan_policy>, rights_for<CreatePolicyStmt>, AskedAgain::kNames},
    {T_CreateSchemaStmt, planned_by<plan_schema>},
    {T_CreateSeqStmt, planned_by<plan_create_sequence>},
    {T_CreateStmt, planned_by<plan_create_table>, rights_for<CreateStmt>},
    {T_CreateTableAsStmt, planned_by<plan_create_table_as>},
    {T_CreateTrigStmt, planned_by<plan_trigger>, rights_for<CreateTrigStmt>, AskedAgain::kNames},
    {T_DropOwnedStmt, planned_by<plan_drop_owned>, rights_for<DropOwnedStmt>},
    {T_DropStmt, planned_by<plan_drop>, rights_for<DropStmt>},
    {T_GrantStmt, planned_by<plan_grant>, nullptr, AskedAgain::kNames},
    {T_IndexStmt, planned_by<plan_index>, rights_for<IndexStmt>},
    {T_LockStmt, planned_here},  // concerns us, and is no DDL
    {T_ReassignOwnedStmt, planned_by<plan_reassign_owned>, rights_for<ReassignOwnedStmt>},
    {T_ReindexStmt, planned_by<plan_reindex>},
    {T_RenameStmt, planned_by<plan_rename>, rights_for<RenameStmt>},
    {T_RuleStmt, planned_by<plan_rule>, rights_for<RuleStmt>, AskedAgain::kNames},
    {T_TruncateStmt, planned_by<plan_truncate>, rights_for<TruncateStmt>},
    {T_VacuumStmt, planned_by<plan_vacuum>},
};

// The rows by their tags: every utility statement looks for its own.
class Kinds {
 public:
  Kinds() {
    add(kKinds);
    add(object_kinds());
  }
  const StatementKind* of(const Node* statement) const {
    const auto tag = uint64_t(nodeTag(statement));
    return tag < kTags ? by_tag_[tag] : nullptr;
  }

 private:
  static constexpr uint64_t kTags = 1024;  // those of PostgreSQL 15 are below 600

  void add(std::span<const StatementKind> rows) {
    for (const StatementKind& row : rows) {
      VERIFY(uint64_t(row.tag) < kTags && by_tag_[row.tag] == nullptr);
      by_tag_[row.tag] = &row;
    }
  }

  const StatementKind* by_tag_[kTags] = {};
};

// Null: one without a row.
const StatementKind* kind_of(const Node* statement) {
  static const Kinds kinds;
  return kinds.of(statement);
}

DdlPlan plan_statement(Node* statement) {
  if (is_of_cluster(statement)) return plan_of_cluster(statement);
  const StatementKind* kind = kind_of(statement);
  if (!kind || (!OidIsValid(gcl_access_method()) && !IsA(statement, CreateExtensionStmt))) return local();
  return kind->plan(statement);
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

bool may_concern_us(const Node* statement) { return kind_of(statement) != nullptr || is_of_cluster(statement); }

bool has_rights(const Node* statement) {
  if (is_of_cluster(statement)) return has_rights_of_cluster(statement);
  const StatementKind* kind = kind_of(statement);
  return !kind || !kind->has_rights || kind->has_rights(statement);
}

AskedAgain asked_again(const Node* statement) {
  // A view may have lost what it was local for.
  if (IsA(statement, AlterTableStmt) && reinterpret_cast<const AlterTableStmt*>(statement)->objtype == OBJECT_VIEW)
    return AskedAgain::kNothing;
  const StatementKind* kind = kind_of(statement);
  return kind ? kind->asked_again : AskedAgain::kNothing;
}

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
