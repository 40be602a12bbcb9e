#include "extension/pg/ddl/replay/oid_queue.hpp"

extern "C" {
#include "catalog/binary_upgrade.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_operator.h"
}

#include "extension/pg/ddl/record/creations.hpp"
#include "extension/pg/ddl/record/object_oids.hpp"

namespace gcl {
namespace {

// One statement at a time is replayed by a backend.
struct OidQueue {
  const DdlRecord* record;
  MemoryContext context;
  int front;  // what the statement makes next
  int ahead;  // what is handed out next: PostgreSQL takes some OIDs before it makes objects in front of them
  bool waits[kMadeOther];  // handed out, and not yet made
  Oid rewriting;           // the transient table whose rows would be written now
  List* others;            // DdlObject*: made here, of kMadeOther
} queue;

int queue_length() { return list_length(queue.record->made); }

const DdlMade* entry(int i) {
  return i < queue_length() ? static_cast<DdlMade*>(list_nth(queue.record->made, i)) : nullptr;
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
void hand_out_versions(const DdlMade& made) {
  const DdlRelationState* state = nullptr;
  ListCell* cell;
  foreach (cell, queue.record->relation_states) {
    const auto* one = static_cast<DdlRelationState*>(lfirst(cell));
    if (one->relation == made.object.oid && one->natts != 0) state = one;
  }
  const int natts = state ? state->natts : made.columns;
  const size_t bytes = offsetof(BinaryUpgradeAttributeVersions, versions) + sizeof(XLogRecPtr) * size_t(natts);
  auto* versions = static_cast<BinaryUpgradeAttributeVersions*>(MemoryContextAlloc(TopMemoryContext, bytes));
  versions->natts = natts;
  for (int i = 0; i < natts; ++i) versions->versions[i] = state ? state->versions[i] : 1;
  take_back_versions();
  binary_upgrade_next_attribute_versions = versions;
}

// There is one variable for each kind.  A relation takes its OID, has its types made, and then takes its versions: so
// the next one of a kind waits until the one before has been made.
//
// While any OID waits PostgreSQL does not ask which table needs a TOAST relation, and one that waits for a TOAST
// relation it gives to whatever table it looks at: nothing behind a TOAST relation is handed out before that is made.
bool may_hand_out(int i) {
  const DdlMade* made = entry(i);
  if (made->kind == kMadeToast || queue.waits[made->kind]) return false;
  return !OidIsValid(queue.rewriting) || (i > 0 && entry(i - 1)->kind == kMadeToast);  // its index
}

// (ddl.upgrade-mode-per-oid)
void set_upgrade_mode() {
  IsBinaryUpgrade = false;
  for (int kind = 0; kind < kMadeOther; ++kind)
    if (OidIsValid(*next_oid(kind))) IsBinaryUpgrade = true;
}

void hand_out(const DdlMade& made) {
  *next_oid(made.kind) = made.object.oid;
  queue.waits[made.kind] = true;
  if (made.kind == kMadeRelation) {
    hand_out_versions(made);
    hand_out_file(&binary_upgrade_next_heap_pg_class_relfilenode);
  }
  if (made.kind == kMadeIndex) hand_out_file(&binary_upgrade_next_index_pg_class_relfilenode);
  if (made.kind == kMadeToast) hand_out_file(&binary_upgrade_next_toast_pg_class_relfilenode);
}

void hand_out_all() {
  for (queue.ahead = Max(queue.ahead, queue.front); queue.ahead < queue_length(); ++queue.ahead) {
    const DdlMade* made = entry(queue.ahead);
    if (made->kind == kMadeOther) continue;  // (ddl.oids-set-afterwards)
    if (!may_hand_out(queue.ahead)) break;
    hand_out(*made);
  }
  set_upgrade_mode();
}

void take_back_all() {
  for (int kind = 0; kind < kMadeOther; ++kind) *next_oid(kind) = InvalidOid;
  for (bool& waits : queue.waits) waits = false;
  queue.ahead = queue.front;
  take_back_versions();
}

// A statement that rewrites several tables makes a transient table for one, rebuilds its indexes in new files, drops
// the transient table, and goes on to the next (ddl.no-oid-during-rewrite).
void begin_rewrite(Oid transient) {
  queue.rewriting = transient;
  take_back_all();
}

[[noreturn]] void refuse_order(const char* detail) {
  ereport(ERROR,
          (errcode(ERRCODE_DATA_CORRUPTED),
           errmsg("the statement made other objects here than on the primary it came from"), errdetail("%s", detail),
           errhint("Something that the statement depends on differs between the primaries: compare what it "
                   "names, local objects too, on both.")));
  pg_unreachable();
}

bool are_one(const DdlMade& here, const DdlMade& there) {
  if (here.kind != there.kind || here.object.catalog != there.object.catalog) return false;
  return here.kind == kMadeOther || here.object.oid == there.object.oid;
}

void check_front(const DdlMade& here) {
  const DdlMade* there = entry(queue.front);
  if (!there) refuse_order(psprintf("It made %d objects there, and then %s here.", queue.front, describe_made(here)));
  if (!are_one(here, *there))
    refuse_order(psprintf("Object %d was %s with OID %u there, and is %s with OID %u here.", queue.front + 1,
                          describe_made(*there), there->object.oid, describe_made(here), here.object.oid));
}

void note_other(const DdlMade& here) {
  MemoryContext caller = MemoryContextSwitchTo(queue.context);
  auto* object = static_cast<DdlObject*>(palloc(sizeof(DdlObject)));
  *object = here.object;
  queue.others = lappend(queue.others, object);
  MemoryContextSwitchTo(caller);
}

}  // namespace

void open_oid_queue(const DdlRecord* record) {
  queue = {record, CurrentMemoryContext, 0, 0, {}, InvalidOid, NIL};
  hand_out_all();
}

void take_oid(Oid catalog, Oid oid) {
  if (!has_outcome(queue.record)) return;
  const DdlMade here = creation_of(catalog, oid);
  check_front(here);
  ++queue.front;
  if (here.kind == kMadeOther)
    note_other(here);
  else
    queue.waits[here.kind] = false;
  if (here.transient && queue.record->targets != NIL) begin_rewrite(oid);
  hand_out_all();
}

bool take_toast_oid(Oid table) {
  const DdlMade* made = entry(queue.front);
  if (!made || made->kind != kMadeToast || made->toasted != table) return false;
  hand_out(*made);
  set_upgrade_mode();
  return true;
}

void note_relation_drop(Oid oid) {
  if (oid != queue.rewriting) return;
  queue.rewriting = InvalidOid;
  hand_out_all();
}

void finish_oid_queue() {
  ListCell* cell;
  foreach (cell, shells_of(queue.others)) take_oid(OperatorRelationId, lfirst_oid(cell));
  if (const DdlMade* left = entry(queue.front))
    refuse_order(psprintf("It made %d objects here and %d there; what is missing first is %s with OID %u.", queue.front,
                          queue_length(), describe_made(*left), left->object.oid));
}

void close_oid_queue() {
  IsBinaryUpgrade = false;
  take_back_all();
  binary_upgrade_next_heap_pg_class_relfilenode = InvalidOid;
  binary_upgrade_next_index_pg_class_relfilenode = InvalidOid;
  binary_upgrade_next_toast_pg_class_relfilenode = InvalidOid;
}

void set_other_oids() {
  List* wanted = NIL;
  ListCell* cell;
  foreach (cell, queue.record->made)
    if (static_cast<DdlMade*>(lfirst(cell))->kind == kMadeOther) wanted = lappend(wanted, lfirst(cell));
  impose_object_oids(wanted, queue.others);
}

}  // namespace gcl
