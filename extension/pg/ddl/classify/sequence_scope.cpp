#include "extension/pg/ddl/classify/sequence_scope.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/ddl/objects/shared_or_local.hpp"
#include "extension/pg/ddl/record/record_objects.hpp"
#include "extension/pg/sequence/sequence_file.hpp"

extern "C" {
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gcl {
namespace {

void add_sequence(DdlPlan* plan, Oid sequence, LOCKMODE mode, bool changed) {
  if (!OidIsValid(sequence) || !is_gcl_sequence(sequence) || list_member_oid(plan->sequences, sequence)) return;
  add_target(plan, sequence, mode);
  if (changed) plan->sequences = lappend_oid(plan->sequences, sequence);
}

// OWNED BY a column of a table that only this primary has.
bool owned_by_local(const List* options) {
  ListCell* cell;
  foreach (cell, options) {
    auto* option = lfirst_node(DefElem, cell);
    if (strcmp(option->defname, "owned_by") != 0) continue;
    List* names = defGetQualifiedName(option);
    if (list_length(names) < 2) return false;  // NONE
    const Oid table = find_relation(makeRangeVarFromNameList(list_truncate(list_copy(names), list_length(names) - 1)));
    return OidIsValid(table) && !is_cluster_relation(table);
  }
  return false;
}

}  // namespace

DdlPlan plan_create_sequence(const CreateSeqStmt* statement) {
  const RangeVar* name = statement->sequence;
  const bool temporary = name->schemaname && strcmp(name->schemaname, "pg_temp") == 0;
  if (temporary || name->relpersistence != RELPERSISTENCE_PERMANENT || owned_by_local(statement->options))
    return local();
  if (statement->if_not_exists && OidIsValid(find_where_made(name))) return local();
  return everywhere();
}

DdlPlan plan_alter_sequence(const AlterSeqStmt* statement) {
  const Oid sequence = find_relation(statement->sequence);
  if (!OidIsValid(sequence) || !is_gcl_sequence(sequence)) return local();
  DdlPlan plan = everywhere();
  plan.leaves = owned_by_local(statement->options);
  add_sequence(&plan, sequence, plan.leaves ? AccessExclusiveLock : ShareRowExclusiveLock, true);
  return plan;
}

void add_altered_identity_columns(DdlPlan* plan, const AlterTableStmt* statement) {
  const Oid table = find_relation(statement->relation);
  ListCell* cell;
  foreach (cell, statement->cmds) {
    const auto* command = lfirst_node(AlterTableCmd, cell);
    if (command->subtype != AT_SetIdentity && command->subtype != AT_AlterColumnType) continue;
    const AttrNumber column = command->name ? get_attnum(table, command->name) : InvalidAttrNumber;
    if (column == InvalidAttrNumber) continue;
    add_sequence(plan, getIdentitySequence(table, column, true), AccessExclusiveLock, true);
  }
}

void add_owned_sequences(DdlPlan* plan, bool restart) {
  List* owned = NIL;
  ListCell* cell;
  foreach (cell, plan->targets)
    owned = list_concat_unique_oid(owned, getOwnedSequences(static_cast<DdlTarget*>(lfirst(cell))->relation));
  list_sort(owned, list_oid_cmp);
  foreach (cell, owned) add_sequence(plan, lfirst_oid(cell), AccessExclusiveLock, restart);
}

char* statement_to_drop(Oid sequence) {
  const char* schema = get_namespace_name(get_rel_namespace(sequence));
  return psprintf("DROP SEQUENCE %s", quote_qualified_identifier(schema, get_rel_name(sequence)));
}

List* hand_to_server(const List* sequences) {
  List* values = NIL;
  ListCell* cell;
  foreach (cell, sequences) {
    LockRelationOid(lfirst_oid(cell), ShareRowExclusiveLock);
    const engine::SequenceState state = state_of_sequence(lfirst_oid(cell));
    auto* value = static_cast<DdlSequence*>(palloc(sizeof(DdlSequence)));
    *value = {lfirst_oid(cell), state.last, state.called};
    values = lappend(values, value);
    move_sequence_to_server(value->relation, state, true);
  }
  return values;
}

void hand_to_server_again(const List* sequences) {
  ListCell* cell;
  foreach (cell, sequences) {
    const auto* value = static_cast<DdlSequence*>(lfirst(cell));
    LockRelationOid(value->relation, ShareRowExclusiveLock);
    move_sequence_to_server(value->relation, {value->last, value->called}, false);
  }
}

static bool is_servers(Oid relation) {
  return get_rel_relkind(relation) == RELKIND_SEQUENCE && get_rel_persistence(relation) == RELPERSISTENCE_PERMANENT &&
         !is_gcl_sequence(relation);
}

void take_from_server(const DdlRecord* record) {
  ListCell* cell;
  foreach (cell, made_of_kind(record->made, kMadeRelation))
    if (is_servers(lfirst_oid(cell))) move_sequence_to_pool(lfirst_oid(cell), coherence::PageId{});
  foreach (cell, record->sequences) {
    const auto* value = static_cast<DdlSequence*>(lfirst(cell));
    if (is_servers(value->relation)) move_sequence_to_pool(value->relation, coherence::PageId{});
  }
}

void take_from_server_again(const DdlRelationState* state) {
  if (is_servers(state->relation)) move_sequence_to_pool(state->relation, coherence::PageId{state->header});
}

}  // namespace gcl
