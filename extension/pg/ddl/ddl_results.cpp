#include "extension/pg/ddl/ddl_results.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/binary_upgrade.h"
#include "catalog/catalog.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
}

#include "extension/pg/ddl/attribute_versions.hpp"
#include "extension/pg/ddl/constraint_oids.hpp"
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_scope.hpp"
#include "extension/pg/relation_record.hpp"

namespace gcl {
namespace {

object_access_hook_type previous_access_hook = nullptr;

// One statement at a time is captured, or replayed, by a backend.
struct Capture {
  bool active;
  MemoryContext context;
  List* classes;  // OIDs in order of creation
  List* types;
  List* pages;  // DdlPages*
} capture;

struct Replay {
  bool active;
  bool keeps_oids;
  const DdlRecord* record;
  int heap, index, type, array_type;  // how many of each were handed out
} replay;

[[noreturn]] void refuse_outside() {
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("this command would change a gcl table on this primary only"),
           errhint("Use CREATE, ALTER, DROP or TRUNCATE of the table itself.")));
  pg_unreachable();
}

void hand_out(Oid* to, const List* oids, int* given) {
  if (!OidIsValid(*to) && *given < list_length(oids)) *to = list_nth_oid(oids, (*given)++);
}

// The file of a relation has a number of its own on every primary.
void hand_out_file(Oid* to) {
  if (OidIsValid(*to)) return;
  const bool was = IsBinaryUpgrade;
  IsBinaryUpgrade = false;
  *to = GetNewRelFileNode(MyDatabaseTableSpace, nullptr, RELPERSISTENCE_PERMANENT);
  IsBinaryUpgrade = was;
}

void hand_out_versions(Oid table) {
  ListCell* cell;
  foreach (cell, replay.record->shapes) {
    const auto* shape = static_cast<DdlShape*>(lfirst(cell));
    if (shape->relation != table || shape->natts == 0) continue;
    const size_t bytes = offsetof(BinaryUpgradeAttributeVersions, versions) + sizeof(XLogRecPtr) * size_t(shape->natts);
    auto* versions = static_cast<BinaryUpgradeAttributeVersions*>(MemoryContextAlloc(TopMemoryContext, bytes));
    versions->natts = shape->natts;
    for (int i = 0; i < shape->natts; ++i) versions->versions[i] = shape->versions[i];
    binary_upgrade_next_attribute_versions = versions;
  }
}

void hand_out_all() {
  const DdlRecord* record = replay.record;
  const int heaps = replay.heap;
  hand_out(&binary_upgrade_next_heap_pg_class_oid, record->heaps, &replay.heap);
  if (replay.heap != heaps) hand_out_versions(binary_upgrade_next_heap_pg_class_oid);
  hand_out(&binary_upgrade_next_index_pg_class_oid, record->indexes, &replay.index);
  hand_out(&binary_upgrade_next_pg_type_oid, record->types, &replay.type);
  hand_out(&binary_upgrade_next_array_pg_type_oid, record->array_types, &replay.array_type);
  if (OidIsValid(binary_upgrade_next_heap_pg_class_oid)) hand_out_file(&binary_upgrade_next_heap_pg_class_relfilenode);
  if (OidIsValid(binary_upgrade_next_index_pg_class_oid))
    hand_out_file(&binary_upgrade_next_index_pg_class_relfilenode);
}

void take_back_all() {
  for (Oid* next : {&binary_upgrade_next_heap_pg_class_oid, &binary_upgrade_next_heap_pg_class_relfilenode,
                    &binary_upgrade_next_index_pg_class_oid, &binary_upgrade_next_index_pg_class_relfilenode,
                    &binary_upgrade_next_pg_type_oid, &binary_upgrade_next_array_pg_type_oid})
    *next = InvalidOid;
  binary_upgrade_next_attribute_versions = nullptr;
}

void note_creation(Oid class_id, Oid object) {
  if (!capture.active || (class_id != RelationRelationId && class_id != TypeRelationId)) return;
  MemoryContext caller = MemoryContextSwitchTo(capture.context);
  List** list = class_id == RelationRelationId ? &capture.classes : &capture.types;
  *list = lappend_oid(*list, object);
  MemoryContextSwitchTo(caller);
}

void access_hook(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void* arg) {
  if (previous_access_hook) previous_access_hook(access, class_id, object, sub_id, arg);
  if (access == OAT_POST_CREATE && sub_id == 0) {
    note_creation(class_id, object);
    if (replay.active && replay.keeps_oids) hand_out_all();
  }
  if (access == OAT_DROP && class_id == RelationRelationId && sub_id == 0 && !capture.active && !replay.active &&
      ddl_pool_attached() && is_shared_relation(object))
    refuse_outside();
}

bool override_pages(Oid relation, coherence::PageId* header) {
  if (!replay.active) return false;
  ListCell* cell;
  foreach (cell, replay.record->pages) {
    const auto* pages = static_cast<DdlPages*>(lfirst(cell));
    if (pages->relation != relation) continue;
    *header = coherence::PageId{pages->page};
    return true;
  }
  ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("the DDL record has no pages for relation %u", relation)));
}

void note_pages(Oid relation, RelationFile, coherence::PageId header) {
  if (replay.active) return;
  if (!capture.active) refuse_outside();
  MemoryContext caller = MemoryContextSwitchTo(capture.context);
  auto* pages = static_cast<DdlPages*>(palloc(sizeof(DdlPages)));
  *pages = {relation, header.raw};
  capture.pages = lcons(pages, capture.pages);  // the newest is found first
  MemoryContextSwitchTo(caller);
}

DdlShape* shape_of(Oid oid) {
  Relation relation = try_relation_open(oid, AccessShareLock);
  if (!relation) return nullptr;
  DdlShape* shape;
  if (relation->rd_rel->relkind == RELKIND_RELATION) {
    shape = versions_of(oid);
  } else {
    shape = static_cast<DdlShape*>(palloc0(sizeof(DdlShape)));
    shape->relation = oid;
    shape->checks_xmin = relation->rd_index != nullptr && relation->rd_index->indcheckxmin;
  }
  shape->pages = relation->rd_rel->relpages;
  shape->tuples = relation->rd_rel->reltuples;
  relation_close(relation, NoLock);
  return shape;
}

// The author met row versions that have no entry in the index: older transactions need them, here too.  They are older
// than the row in pg_index that this transaction writes.
void impose_check_of_xmin(Oid index) {
  Relation catalog = table_open(IndexRelationId, RowExclusiveLock);
  HeapTuple tuple = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(index));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for index %u", index);
  reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple))->indcheckxmin = true;
  CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
  table_close(catalog, RowExclusiveLock);
}

// The tables and indexes a record speaks of.
List* relations_of(const DdlRecord* record) {
  List* all = list_concat_copy(record->heaps, record->indexes);
  ListCell* cell;
  foreach (cell, record->targets) all = list_append_unique_oid(all, static_cast<DdlTarget*>(lfirst(cell))->relation);
  return all;
}

// Sorts what was made into the queues that PostgreSQL will draw from in the replay.
void sort_creations(DdlRecord* record) {
  ListCell* cell;
  foreach (cell, capture.classes) {
    const Oid oid = lfirst_oid(cell);
    const char kind = get_rel_relkind(oid);
    if (!is_shared_relation(oid))
      ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                      kind == 0 ? errmsg("statements that rewrite a gcl table are not supported yet")
                                : errmsg("this statement makes \"%s\", which would exist on this primary only",
                                         get_rel_name(oid))));
    List** list = kind == RELKIND_INDEX ? &record->indexes : &record->heaps;
    *list = lappend_oid(*list, oid);
  }
  foreach (cell, capture.types) {
    const Oid oid = lfirst_oid(cell);
    List** list = OidIsValid(get_element_type(oid)) ? &record->array_types : &record->types;
    *list = lappend_oid(*list, oid);
  }
}

// A column of a shared table has a type that is the same everywhere: one that PostgreSQL comes with.
void check_types(List* relations) {
  ListCell* cell;
  foreach (cell, relations) {
    Relation relation = try_relation_open(lfirst_oid(cell), AccessShareLock);
    if (!relation) continue;
    for (int i = 0; i < relation->rd_att->natts; ++i) {
      const Form_pg_attribute attribute = TupleDescAttr(relation->rd_att, i);
      if (!attribute->attisdropped && attribute->atttypid >= FirstNormalObjectId)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("column \"%s\" has type %s, which exists on this primary only",
                               NameStr(attribute->attname), format_type_be(attribute->atttypid)),
                        errhint("gcl tables can have columns of built-in types only, for now.")));
    }
    relation_close(relation, NoLock);
  }
}

}  // namespace

void install_results_hooks() {
  previous_access_hook = object_access_hook;
  object_access_hook = access_hook;
  relation_seam.next_relation_override = override_pages;
  relation_seam.relation_made = note_pages;
}

bool capturing() { return capture.active; }

void begin_capture() { capture = {true, CurrentMemoryContext, NIL, NIL, NIL}; }

void drop_capture() { capture = {}; }

void end_capture(DdlRecord* record, bool exempt) {
  if (!exempt) {
    sort_creations(record);
    record->pages = capture.pages;
    List* relations = relations_of(record);
    check_types(relations);
    ListCell* cell;
    foreach (cell, relations)
      if (DdlShape* shape = shape_of(lfirst_oid(cell))) record->shapes = lappend(record->shapes, shape);
    record->constraints = constraints_of(relations);
    record->outcome = digest_of(relations);
  }
  capture = {};
}

bool replaying() { return replay.active; }

void begin_replay(const DdlRecord* record, bool keeps_oids) {
  replay = {true, keeps_oids, record, 0, 0, 0, 0};
  if (!keeps_oids) return;
  hand_out_all();
  IsBinaryUpgrade = true;
}

void end_replay() {
  IsBinaryUpgrade = false;
  take_back_all();
  replay = {};
}

void finish_replay(const DdlRecord* record) {
  ListCell* cell;
  foreach (cell, record->shapes) {
    const auto* shape = static_cast<DdlShape*>(lfirst(cell));
    Relation relation = try_relation_open(shape->relation, AccessShareLock);
    if (!relation) continue;
    impose_versions(shape);
    if (shape->checks_xmin && !relation->rd_index->indcheckxmin) impose_check_of_xmin(shape->relation);
    vac_update_relstats(relation, BlockNumber(shape->pages), shape->tuples, 0, relation->rd_rel->relhasindex,
                        InvalidTransactionId, InvalidMultiXactId, nullptr, nullptr, true);
    relation_close(relation, NoLock);
  }
  CommandCounterIncrement();
  impose_constraint_oids(record->constraints);
  if (!record->outcome || !*record->outcome) return;
  const char* outcome = digest_of(relations_of(record));
  if (strcmp(outcome, record->outcome) != 0)
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("the statement had another outcome here than on the primary it came from")));
}

}  // namespace gcl
