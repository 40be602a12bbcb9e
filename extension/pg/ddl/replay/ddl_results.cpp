#include "extension/pg/ddl/replay/ddl_results.hpp"

extern "C" {
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "catalog/storage.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/classify/partitions.hpp"
#include "extension/pg/ddl/classify/sequence_scope.hpp"
#include "extension/pg/ddl/objects/ddl_digest.hpp"
#include "extension/pg/ddl/objects/local_drops.hpp"
#include "extension/pg/ddl/objects/shared_or_local.hpp"
#include "extension/pg/ddl/record/captures.hpp"
#include "extension/pg/ddl/record/creations.hpp"
#include "extension/pg/ddl/record/object_oids.hpp"
#include "extension/pg/ddl/record/own_oids.hpp"
#include "extension/pg/ddl/record/record_objects.hpp"
#include "extension/pg/ddl/record/relation_states.hpp"
#include "extension/pg/ddl/replay/oid_queue.hpp"
#include "extension/pg/runtime/relation_record.hpp"
#include "extension/pg/txn/deferred_free.hpp"

namespace gcl {
namespace {

object_access_hook_type previous_access_hook = nullptr;

// One statement at a time is replayed by a backend.
struct Replay {
  bool active;
  const DdlRecord* record;
  MemoryContext context;
} imposing;

LocalStatement local_statement = LocalStatement::kOther;

[[noreturn]] void refuse_outside() {
  if (local_statement == LocalStatement::kNamed) raise_changed_names();
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("this command would change a gcl table on this primary only"),
           errhint("Use CREATE, ALTER, DROP or TRUNCATE of the table itself.")));
  pg_unreachable();
}

bool override_toast(Oid table, bool* needed) {
  if (!imposing.active) return false;
  *needed = take_toast_oid(table);
  return true;
}

void note_creation(Capture* capture, Oid catalog, Oid object) {
  MemoryContext caller = MemoryContextSwitchTo(capture->context);
  auto* made = static_cast<DdlMade*>(palloc(sizeof(DdlMade)));
  *made = creation_of(catalog, object);
  capture->made = lappend(capture->made, made);
  MemoryContextSwitchTo(caller);
}

void note_alteration(Capture* capture, Oid catalog, Oid object) {
  MemoryContext caller = MemoryContextSwitchTo(capture->context);
  auto* altered = static_cast<DdlObject*>(palloc(sizeof(DdlObject)));
  *altered = {catalog, object};
  capture->altered = lappend(capture->altered, altered);
  MemoryContextSwitchTo(caller);
}

// Members of the extension, and what comes with them (arrays, row types), go on this primary only; so it is with all
// that is local.  A view, function, domain or composite type that all primaries have must not.
void check_dropped_along(Oid class_id, Oid object) {
  const bool is_view = class_id == RelationRelationId && get_rel_relkind(object) == RELKIND_VIEW;
  const char kind = class_id == TypeRelationId ? get_typtype(object) : '\0';
  const bool is_type =
      kind == TYPTYPE_DOMAIN || kind == TYPTYPE_ENUM ||
      (kind == TYPTYPE_COMPOSITE && get_rel_relkind(get_typ_typrelid(object)) == RELKIND_COMPOSITE_TYPE);
  if (!is_view && !is_type && class_id != ProcedureRelationId) return;
  if (OidIsValid(getExtensionOfObject(class_id, object)) || is_local_object(class_id, object)) return;
  ObjectAddress address;
  ObjectAddressSet(address, class_id, object);
  ereport(ERROR, (errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
                  errmsg("%s would be dropped on this primary only", getObjectDescription(&address, false)),
                  errdetail("An extension is each primary's own; what depends on it here belongs to all."),
                  errhint("Drop what depends on it first.")));
}

// (ddl.captured-changes-only)
void check_changed_alone(ObjectAccessType access, Oid class_id, Oid object, int sub_id) {
  if (access == OAT_POST_CREATE || !ddl_pool_attached()) return;
  if (access == OAT_DROP && sub_id == 0 && local_statement == LocalStatement::kDropsExtension)
    check_dropped_along(class_id, object);
  if (access == OAT_POST_ALTER && local_statement == LocalStatement::kLeaving) return;
  if (is_shared_relation(relation_of_part(class_id, object))) refuse_outside();
}

// An index that keeps the file of another one, because a change of type leaves its keys as they are, is made here with
// a number for a new file, and without the file.
void give_file(Oid relation) {
  Relation index = RelationIdGetRelation(relation);
  if (!RelationIsValid(index)) return;
  if (index->rd_rel->relkind == RELKIND_INDEX && !smgrexists(RelationGetSmgr(index), MAIN_FORKNUM))
    (void)RelationCreateStorage(index->rd_node, index->rd_rel->relpersistence, true);
  RelationClose(index);
}

void access_hook(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void* arg) {
  if (previous_access_hook) previous_access_hook(access, class_id, object, sub_id, arg);
  // The others are uses, by every statement of every client.
  if (access != OAT_POST_CREATE && access != OAT_DROP && access != OAT_POST_ALTER) return;
  Capture* capture = working_capture();
  if (access == OAT_POST_CREATE && sub_id == 0) {
    if (capture) note_creation(capture, class_id, object);
    if (imposing.active) {
      take_oid(class_id, object);
      if (class_id == RelationRelationId) give_file(object);
    }
  }
  if (access == OAT_DROP && imposing.active) {
    MemoryContext caller = MemoryContextSwitchTo(imposing.context);
    note_local_drop(class_id, object, sub_id);
    MemoryContextSwitchTo(caller);
    if (class_id == RelationRelationId && sub_id == 0) note_relation_drop(object);
  }
  if (access == OAT_POST_ALTER && capture) note_alteration(capture, class_id, object);
  // Of a default the hook tells the table and the column.
  if (access == OAT_POST_CREATE && class_id == AttrDefaultRelationId && capture)
    note_alteration(capture, RelationRelationId, object);
  if (!capture && !imposing.active) check_changed_alone(access, class_id, object, sub_id);
}

bool override_pages(Oid relation, coherence::PageId* header) {
  if (!imposing.active) return false;
  ListCell* cell;
  foreach (cell, imposing.record->pages) {
    const auto* pages = static_cast<DdlPages*>(lfirst(cell));
    if (pages->relation != relation) continue;
    *header = coherence::PageId{pages->page};
    return true;
  }
  ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("the DDL record has no pages for relation %u", relation)));
}

void note_pages(Oid relation, RelationFile, coherence::PageId header) {
  if (imposing.active) return;
  Capture* capture = working_capture();
  if (!capture) refuse_outside();
  MemoryContext caller = MemoryContextSwitchTo(capture->context);
  auto* pages = static_cast<DdlPages*>(palloc(sizeof(DdlPages)));
  *pages = {relation, header.raw};
  capture->pages = lcons(pages, capture->pages);  // the newest is found first
  MemoryContextSwitchTo(caller);
}

[[noreturn]] void refuse_local(const char* what) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("%s, which would exist on this primary only", what),
                  errhint("gcl tables can depend on gcl tables and on objects that depend on no local table; a "
                          "statement makes either gcl tables or local ones.")));
  pg_unreachable();
}

// Heap tables are not made along with others, and gcl tables depend on nothing local.
bool belongs_to_all(const DdlRecord* record) {
  ListCell* cell;
  foreach (cell, made_of_kind(record->made, kMadeRelation)) {
    const char kind = get_rel_relkind(lfirst_oid(cell));
    if (kind == 0 || kind == RELKIND_VIEW || kind == RELKIND_COMPOSITE_TYPE || is_shared_relation(lfirst_oid(cell)))
      continue;
    refuse_local(psprintf("this statement makes \"%s\"", get_rel_name(lfirst_oid(cell))));
  }
  if (!any_is_local(touched_by(record))) return true;
  foreach (cell, relations_of(record))
    if (is_shared_relation(lfirst_oid(cell)) && !IsToastNamespace(get_rel_namespace(lfirst_oid(cell))))
      refuse_local(psprintf("gcl table \"%s\" would depend on something", get_rel_name(lfirst_oid(cell))));
  return false;
}

void collect_relation_states(DdlRecord* record) {
  ListCell* cell;
  foreach (cell, relations_of(record)) {
    if (get_rel_relkind(lfirst_oid(cell)) == 0) continue;
    forget_frozen_ids(lfirst_oid(cell));
    CommandCounterIncrement();
    DdlRelationState* state = relation_state_of(lfirst_oid(cell));
    if (!state) continue;
    record->relation_states = lappend(record->relation_states, state);
    // An index that was made in place of another one may have taken its tree along.
    if (get_rel_relkind(state->relation) == RELKIND_INDEX)
      pages_kept(RelationFile::kIndex, coherence::PageId{state->header});
  }
}

}  // namespace

void install_results_hooks() {
  previous_access_hook = object_access_hook;
  object_access_hook = access_hook;
  relation_seam.next_relation_override = override_pages;
  relation_seam.relation_made = note_pages;
  relation_seam.toast_override = override_toast;
}

LocalStatement set_local_statement(LocalStatement what) {
  const LocalStatement before = local_statement;
  local_statement = what;
  return before;
}

void raise_changed_names() {
  ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                  errmsg("a gcl table has taken the name of a local one while the statement waited"),
                  errhint("Run it again: it will be done on every primary.")));
  pg_unreachable();
}

bool end_capture(Capture* capture, DdlRecord* record, const DdlPlan& plan, bool exempt) {
  capture->stage = CaptureStage::kDone;
  if (exempt) return true;
  ListCell* cell;
  foreach (cell, shells_of(capture->made)) note_creation(capture, OperatorRelationId, lfirst_oid(cell));
  record->made = capture->made;
  record->altered = capture->altered;
  record->pages = capture->pages;
  take_from_server(record);
  if (plan.partitioned) mark_partitioned(made_of_kind(record->made, kMadeRelation));
  note_plan(record, plan);
  if (plan.owned) record->made = record->altered = NIL;  // this primary's own are among them
  if (!plan.owned && !belongs_to_all(record)) return false;
  collect_relation_states(record);
  record->labels = labels_of(enums_of(record));
  check_own_oids(record, capture->first_oid);
  record->outcome = digest_of(relations_of(record), objects_of(record));
  return true;
}

bool replaying() { return imposing.active; }

void begin_replay(const DdlRecord* record) {
  imposing = {true, record, CurrentMemoryContext};
  begin_local_drops();
  open_oid_queue(record);
}

void end_replay() {
  close_oid_queue();
  imposing.active = false;
}

void finish_replay(const DdlRecord* record) {
  ListCell* cell;
  set_other_oids();
  impose_labels(record->labels);
  mark_partitioned(made_of_kind(record->made, kMadeRelation));
  foreach (cell, record->relation_states) {
    const auto* state = static_cast<DdlRelationState*>(lfirst(cell));
    take_from_server_again(state);
    forget_frozen_ids(state->relation);
    CommandCounterIncrement();
    CacheInvalidateRelcacheByRelid(state->relation);  // OIDs of its triggers and constraints may have changed
    impose_relation_state(state);
  }
  CommandCounterIncrement();
  if (!has_outcome(record)) return;
  const char* outcome = digest_of(relations_of(record), objects_of(record));
  if (strcmp(outcome, record->outcome) != 0)
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("the statement had another outcome here than on the primary it came from")));
}

}  // namespace gcl
