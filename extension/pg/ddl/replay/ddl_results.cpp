#include "extension/pg/ddl/replay/ddl_results.hpp"

extern "C" {
#include "catalog/binary_upgrade.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
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
  int given[kMadeKinds];  // how many of each were handed out
  Oid rewriting;          // the transient table whose rows would be written now
  Creations made;
} imposing;

LocalStatement local_statement = LocalStatement::kOther;

[[noreturn]] void refuse_outside() {
  if (local_statement == LocalStatement::kNamed) raise_changed_names();
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("this command would change a gcl table on this primary only"),
           errhint("Use CREATE, ALTER, DROP or TRUNCATE of the table itself.")));
  pg_unreachable();
}

// The variable that PostgreSQL takes the next OID of a kind from.
Oid* next_oid(int kind) {
  switch (kind) {
    case kMadeRelation:
      return &binary_upgrade_next_heap_pg_class_oid;
    case kMadeIndex:
      return &binary_upgrade_next_index_pg_class_oid;
    case kMadeToast:
      return &binary_upgrade_next_toast_pg_class_oid;
    case kMadeType:
      return &binary_upgrade_next_pg_type_oid;
    case kMadeArray:
      return &binary_upgrade_next_array_pg_type_oid;
    case kMadeMultirange:
      return &binary_upgrade_next_mrng_pg_type_oid;
    case kMadeRole:
      return &binary_upgrade_next_pg_authid_oid;
    default:
      return &binary_upgrade_next_mrng_array_pg_type_oid;
  }
}

// The file of a relation has a number of its own on every primary.
void hand_out_file(Oid* to) {
  if (OidIsValid(*to)) return;
  const bool was = IsBinaryUpgrade;
  IsBinaryUpgrade = false;
  *to = GetNewRelFileNode(MyDatabaseTableSpace, nullptr, RELPERSISTENCE_PERMANENT);
  IsBinaryUpgrade = was;
}

// Versions that the relation before did not take.
void take_back_versions() {
  if (binary_upgrade_next_attribute_versions) pfree(binary_upgrade_next_attribute_versions);
  binary_upgrade_next_attribute_versions = nullptr;
}

// A relation that the statement dropped again has no state: any versions will do.
void hand_out_versions(Oid relation, int columns) {
  const DdlRelationState* state = nullptr;
  ListCell* cell;
  foreach (cell, imposing.record->relation_states) {
    const auto* one = static_cast<DdlRelationState*>(lfirst(cell));
    if (one->relation == relation && one->natts != 0) state = one;
  }
  const int natts = state ? state->natts : columns;
  const size_t bytes = offsetof(BinaryUpgradeAttributeVersions, versions) + sizeof(XLogRecPtr) * size_t(natts);
  auto* versions = static_cast<BinaryUpgradeAttributeVersions*>(MemoryContextAlloc(TopMemoryContext, bytes));
  versions->natts = natts;
  for (int i = 0; i < natts; ++i) versions->versions[i] = state ? state->versions[i] : 1;
  take_back_versions();
  binary_upgrade_next_attribute_versions = versions;
}

// The TOAST relation that is to be made next; null: none.
const DdlToast* next_toast() {
  const int made = list_length(imposing.made.toasts);
  return made < list_length(imposing.record->toasts) ? static_cast<DdlToast*>(list_nth(imposing.record->toasts, made))
                                                     : nullptr;
}

// A relation takes its OID, has its types made, and then takes its versions: the next one's must not be there yet.
// While any OID waits PostgreSQL does not ask which table needs a TOAST relation, and one that waits for a TOAST
// relation it gives to whatever table it looks at: what was made behind a TOAST relation is handed out behind it, and
// its own when the table it is for is asked (ddl.toast-belongs-to-statement).
bool may_hand_out(int kind) {
  if (kind == kMadeToast) return false;
  if (const DdlToast* toast = next_toast(); toast && imposing.given[kind] >= toast->before[kind]) return false;
  if (OidIsValid(imposing.rewriting) && kind == kMadeIndex)  // of its TOAST relation
    return imposing.made.newest_is_toast;
  if (OidIsValid(imposing.rewriting)) return false;
  return kind != kMadeRelation ||
         list_length(imposing.made.relations_and_types[kMadeRelation]) == imposing.given[kMadeRelation];
}

// IsBinaryUpgrade is on only while an OID waits to be taken (ddl.upgrade-mode-per-oid).
void hand_out_all() {
  bool waits = false;
  for (int kind = 0; kind < kMadeKinds; ++kind) {
    Oid* next = next_oid(kind);
    const List* oids = imposing.record->made[kind];
    if (!OidIsValid(*next) && imposing.given[kind] < list_length(oids) && may_hand_out(kind)) {
      const int i = imposing.given[kind]++;
      *next = list_nth_oid(oids, i);
      if (kind == kMadeRelation) hand_out_versions(*next, list_nth_int(imposing.record->columns, i));
    }
    waits |= OidIsValid(*next);
  }
  if (OidIsValid(*next_oid(kMadeRelation))) hand_out_file(&binary_upgrade_next_heap_pg_class_relfilenode);
  if (OidIsValid(*next_oid(kMadeIndex))) hand_out_file(&binary_upgrade_next_index_pg_class_relfilenode);
  IsBinaryUpgrade = waits;
}

bool override_toast(Oid table, bool* needed) {
  if (!imposing.active) return false;
  const DdlToast* toast = next_toast();
  *needed = toast && toast->table == table;
  if (!*needed) return true;
  *next_oid(kMadeToast) = list_nth_oid(imposing.record->made[kMadeToast], imposing.given[kMadeToast]++);
  hand_out_file(&binary_upgrade_next_toast_pg_class_relfilenode);
  IsBinaryUpgrade = true;
  return true;
}

// A statement that rewrites several tables makes a transient table for one, rebuilds its indexes in new files, drops
// the transient table, and goes on to the next.  Meanwhile no OID may wait (ddl.upgrade-mode-per-oid).
void withdraw_all() {
  for (int kind = 0; kind < kMadeKinds; ++kind) {
    if (!OidIsValid(*next_oid(kind))) continue;
    *next_oid(kind) = InvalidOid;
    --imposing.given[kind];
  }
  take_back_versions();
}

void note_relation_made(Oid relation) {
  if (!imposing.made.newest_is_transient || imposing.record->targets == NIL) return;
  imposing.rewriting = relation;
  withdraw_all();
}

void note_relation_dropped(Oid relation) {
  if (relation != imposing.rewriting) return;
  imposing.rewriting = InvalidOid;
  hand_out_all();
}

void take_back_all() {
  for (int kind = 0; kind < kMadeKinds; ++kind) *next_oid(kind) = InvalidOid;
  binary_upgrade_next_heap_pg_class_relfilenode = InvalidOid;
  binary_upgrade_next_index_pg_class_relfilenode = InvalidOid;
  binary_upgrade_next_toast_pg_class_relfilenode = InvalidOid;
  take_back_versions();
}

void note_creation_in(MemoryContext context, Creations* made, Oid catalog, Oid object) {
  MemoryContext caller = MemoryContextSwitchTo(context);
  note_creation(made, catalog, object);
  MemoryContextSwitchTo(caller);
}

void note_alteration_in(MemoryContext context, Creations* made, Oid catalog, Oid object) {
  MemoryContext caller = MemoryContextSwitchTo(context);
  note_alteration(made, catalog, object);
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
    if (capture) note_creation_in(capture->context, &capture->made, class_id, object);
    if (imposing.active) {
      note_creation_in(imposing.context, &imposing.made, class_id, object);
      if (class_id == RelationRelationId) {
        note_relation_made(object);
        give_file(object);
      }
      hand_out_all();
    }
  }
  if (access == OAT_DROP && imposing.active) {
    MemoryContext caller = MemoryContextSwitchTo(imposing.context);
    note_local_drop(class_id, object, sub_id);
    MemoryContextSwitchTo(caller);
    if (class_id == RelationRelationId && sub_id == 0) note_relation_dropped(object);
  }
  if (access == OAT_POST_ALTER && capture) note_alteration_in(capture->context, &capture->made, class_id, object);
  // Of a default the hook tells the table and the column.
  if (access == OAT_POST_CREATE && class_id == AttrDefaultRelationId && capture)
    note_alteration_in(capture->context, &capture->made, RelationRelationId, object);
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
  foreach (cell, record->made[kMadeRelation]) {
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
  for (int kind = 0; kind < kMadeKinds; ++kind) record->made[kind] = capture->made.relations_and_types[kind];
  record->columns = capture->made.columns;
  record->toasts = capture->made.toasts;
  record->objects = capture->made.objects;
  record->altered = capture->made.altered;
  record->pages = capture->pages;
  take_from_server(record);
  if (plan.partitioned) mark_partitioned(record->made[kMadeRelation]);
  note_plan(record, plan);
  if (plan.owned) record->objects = record->altered = NIL;  // this primary's own are among them
  if (!plan.owned && !belongs_to_all(record)) return false;
  collect_relation_states(record);
  record->labels = labels_of(enums_of(record));
  check_own_oids(record, capture->first_oid);
  record->objects = with_shells(record->objects);
  record->outcome = digest_of(relations_of(record), objects_of(record));
  return true;
}

bool replaying() { return imposing.active; }

void begin_replay(const DdlRecord* record) {
  imposing = {true, record, CurrentMemoryContext, {}, {}};
  begin_local_drops();
  hand_out_all();
}

void check_all_is_made() {
  for (const int kind : {kMadeRelation, kMadeIndex, kMadeToast})
    if (imposing.given[kind] != list_length(imposing.record->made[kind]) || OidIsValid(*next_oid(kind)))
      ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                      errmsg("the statement made less here than on the primary it came from")));
}

void end_replay() {
  IsBinaryUpgrade = false;
  take_back_all();
  imposing.active = false;
}

void finish_replay(const DdlRecord* record) {
  ListCell* cell;
  if (record->outcome && *record->outcome) impose_object_oids(record->objects, with_shells(imposing.made.objects));
  impose_labels(record->labels);
  mark_partitioned(record->made[kMadeRelation]);
  foreach (cell, record->relation_states) {
    const auto* state = static_cast<DdlRelationState*>(lfirst(cell));
    take_from_server_again(state);
    forget_frozen_ids(state->relation);
    CommandCounterIncrement();
    CacheInvalidateRelcacheByRelid(state->relation);  // OIDs of its triggers and constraints may have changed
    impose_relation_state(state);
  }
  CommandCounterIncrement();
  if (!record->outcome || !*record->outcome) return;
  const char* outcome = digest_of(relations_of(record), objects_of(record));
  if (strcmp(outcome, record->outcome) != 0)
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("the statement had another outcome here than on the primary it came from")));
}

}  // namespace gcl
