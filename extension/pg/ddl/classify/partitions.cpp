#include "extension/pg/ddl/classify/partitions.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

constexpr const char* kHint =
    "All tables of one tree are gcl tables, or none is: USING gcl for partitions and children, and SET "
    "default_table_access_method = gcl before CREATE TABLE ... PARTITION BY.";

// has_subclass() raises if the relation has gone.
bool has_children(Oid relation) {
  FormData_pg_class form;
  return find_class(relation, &form) && form.relhassubclass;
}

// Marks a table as PostgreSQL does: by its access method, and a dependency on that.
void mark(Oid table, Oid method) {
  Relation catalog = table_open(RelationRelationId, RowExclusiveLock);
  HeapTuple tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(table));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for relation %u", table);
  reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relam = method;
  CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
  table_close(catalog, RowExclusiveLock);
  ObjectAddress dependent, needed;
  ObjectAddressSet(dependent, RelationRelationId, table);
  ObjectAddressSet(needed, AccessMethodRelationId, method);
  recordDependencyOn(&dependent, &needed, DEPENDENCY_NORMAL);
  CommandCounterIncrement();
}

}  // namespace

bool makes_shared_table(const CreateStmt* statement, bool names_gcl) {
  bool parents_shared = false, parents_local = false;
  ListCell* cell;
  foreach (cell, statement->inhRelations) {
    const Oid parent = find_relation(lfirst_node(RangeVar, cell));
    if (!OidIsValid(parent)) continue;  // PostgreSQL says so
    parents_shared |= is_shared_table(parent);
    parents_local |= !is_shared_table(parent);
  }
  const bool shared = names_gcl || (statement->partspec && parents_shared);
  if (shared ? parents_local : parents_shared) refuse_ddl("a gcl and a local table in one tree of tables", kHint);
  return shared;
}

const RangeVar* other_table(const AlterTableCmd* command) {
  const RangeVar* name = nullptr;
  if (command->subtype == AT_AddInherit || command->subtype == AT_DropInherit) name = castNode(RangeVar, command->def);
  if (command->subtype == AT_AttachPartition || command->subtype == AT_DetachPartition)
    name = castNode(PartitionCmd, command->def)->name;
  return OidIsValid(find_relation(name)) ? name : nullptr;
}

bool changes_tree(const AlterTableStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->cmds)
    if (other_table(lfirst_node(AlterTableCmd, cell))) return true;
  return false;
}

void check_attached(const AlterTableCmd* command, bool shared) {
  const Oid other = find_relation(other_table(command));
  if (OidIsValid(other) && is_shared_relation(other) != shared)
    refuse_ddl("a gcl and a local table in one tree of tables", kHint);
  if (!shared) return;
  if (command->subtype == AT_DetachPartition && castNode(PartitionCmd, command->def)->concurrent)
    refuse_ddl("DETACH PARTITION CONCURRENTLY", "Use DETACH PARTITION.");
}

void add_descendants(DdlPlan* plan) {
  ListCell* cell;
  foreach (cell, list_copy(plan->targets)) {
    const auto* target = static_cast<DdlTarget*>(lfirst(cell));
    if (!has_children(target->relation)) continue;
    ListCell* below;
    foreach (below, find_all_inheritors(target->relation, NoLock, nullptr))
      if (!is_target(plan, lfirst_oid(below))) add_target(plan, lfirst_oid(below), target->mode);
  }
}

List* tables_with_columns(const DdlPlan& plan) {
  const Oid first = static_cast<DdlTarget*>(linitial(plan.targets))->relation;
  return has_children(first) ? find_all_inheritors(first, NoLock, nullptr) : list_make1_oid(first);
}

void mark_partitioned(const List* made) {
  const Oid method = gcl_access_method();
  ListCell* cell;
  foreach (cell, made)
    if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_PARTITIONED_TABLE && !is_shared_table(lfirst_oid(cell)))
      mark(lfirst_oid(cell), method);
}

}  // namespace gcl
