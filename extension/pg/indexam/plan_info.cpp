// What the planner is told of gcl indexes.  Its own look at the size of an index sees the local file's two blocks.
#include "extension/pg/indexam/callbacks.hpp"
#include "extension/pg/indexam/open.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"

extern "C" {
#include "access/genam.h"
#include "catalog/pg_am.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

get_relation_info_hook_type next_hook = nullptr;

// In a replay a later statement of the log may have given the pages back already.
void correct(IndexOptInfo* info) {
  if (ddl_replaying()) return;
  Relation index = index_open(info->indexoid, NoLock);  // the planner holds a lock
  const engine::blink::Shape shape = *until_done(index, [&] { return open_tree(index).shape(session()); });
  const double counted = index->rd_rel->reltuples;
  index_close(index, NoLock);
  info->pages = static_cast<BlockNumber>(Max(shape.pages, 1));
  info->tree_height = static_cast<int>(shape.height);
  if (info->indpred == NIL)
    info->tuples = info->rel->tuples;
  else if (counted >= 0)
    info->tuples = Min(counted, info->rel->tuples);  // the server's guess goes by the local file's blocks
}

void correct_indexes(PlannerInfo* root, Oid table, bool parent, RelOptInfo* rel) {
  if (next_hook != nullptr) next_hook(root, table, parent, rel);
  ListCell* cell;
  foreach (cell, rel->indexlist) {
    auto* info = static_cast<IndexOptInfo*>(lfirst(cell));
    // nbtree's indexes can be scanned in parallel, ours cannot: no catalog look-up is needed to tell them apart.
    if (info->relam == BTREE_AM_OID && !info->amcanparallel && !info->hypothetical) correct(info);
  }
}

}  // namespace

void install_index_plan_info() {
  next_hook = get_relation_info_hook;
  get_relation_info_hook = correct_indexes;
}

}  // namespace gcl
