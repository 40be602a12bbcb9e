#include "extension/pg/tableam/drop_hook.hpp"

#include "extension/pg/indexam/dispatch.hpp"
#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/relation_record.hpp"
#include "extension/pg/sequence/sequence_file.hpp"
#include "extension/pg/tableam/table_am.hpp"
#include "extension/pg/txn/deferred_free.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
}

namespace gcl {

namespace {

object_access_hook_type next_hook = nullptr;

void note_sequence_drop(Oid relid) {
  Relation sequence = try_relation_open(relid, NoLock);
  if (sequence == nullptr) return;
  pages_dropped(RelationFile::kSequence, relation_page(sequence));
  relation_close(sequence, NoLock);
}

void note_drop(Oid relid) {
  const char kind = get_rel_relkind(relid);
  if (kind == RELKIND_SEQUENCE && is_gcl_sequence(relid)) return note_sequence_drop(relid);
  if (kind != RELKIND_RELATION && kind != RELKIND_MATVIEW && kind != RELKIND_INDEX && kind != RELKIND_TOASTVALUE)
    return;
  Relation rel = try_relation_open(relid, NoLock);
  if (rel == nullptr) return;
  if (kind == RELKIND_INDEX ? is_gcl_index(rel) : is_gcl_table(rel))
    pages_dropped(kind == RELKIND_INDEX ? RelationFile::kIndex : RelationFile::kTable, relation_page(rel));
  relation_close(rel, NoLock);
}

void on_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void* arg) {
  if (next_hook) next_hook(access, class_id, object_id, sub_id, arg);
  if (access != OAT_DROP || class_id != RelationRelationId || sub_id != 0) return;
  if (object_id < FirstNormalObjectId || node_pool() == nullptr) return;
  note_drop(object_id);
}

}  // namespace

void install_drop_hook() {
  next_hook = object_access_hook;
  object_access_hook = on_access;
}

}  // namespace gcl
