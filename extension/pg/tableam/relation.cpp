// Relations: where a table's pages are, how large it is.
#include "extension/pg/runtime/relation_record.hpp"

#include <math.h>

#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"
#include "extension/pg/tableam/table_am.hpp"
#include "extension/pg/txn/deferred_free.hpp"

extern "C" {
#include "catalog/storage.h"
#include "optimizer/plancat.h"
#include "storage/smgr.h"
#include "utils/timestamp.h"
}

namespace gcl {

using coherence::PageId;

namespace {

// The header page of a new table: a replaying primary takes the coordinator's.
PageId new_table(Oid relid) {
  PageId header;
  if (relation_seam.next_relation_override != nullptr && relation_seam.next_relation_override(relid, &header))
    return header;
  header = new_pages(RelationFile::kTable);
  until_ok(nullptr, [=] { return engine::Heap::create_at(txns(), header); });
  if (relation_seam.relation_made != nullptr) relation_seam.relation_made(relid, RelationFile::kTable, header);
  return header;
}

bool has_pages(Relation rel) {
  return smgrexists(RelationGetSmgr(rel), MAIN_FORKNUM) && smgrnblocks(RelationGetSmgr(rel), MAIN_FORKNUM) > 0;
}

// None in a replay (ddl.replay-scans-empty): when the log is caught up with later, the pages may be long gone.
uint32_t used_blocks(Relation rel, engine::Heap& heap) {
  return ddl_replaying() ? 0 : *until_done(rel, [&] { return heap.used_blocks(); });
}

}  // namespace

// TRUNCATE and rewrites come here too: `rel` then still has its old file, whose pages go when the transaction commits.
void gcl_relation_set_new_filenode(Relation rel, const RelFileNode* newrnode, char persistence,
                                   TransactionId* freezeXid, MultiXactId* minmulti) {
  *freezeXid = InvalidTransactionId;
  *minmulti = InvalidMultiXactId;
  if (persistence != RELPERSISTENCE_PERMANENT)
    not_supported("unlogged or temporary storage", "Use USING heap for unlogged and temporary tables.");
  if (!RelFileNodeEquals(rel->rd_node, *newrnode) && has_pages(rel))
    pages_dropped(RelationFile::kTable, relation_page(rel));
  const PageId header = new_table(RelationGetRelid(rel));
  SMgrRelation file = RelationCreateStorage(*newrnode, persistence, true);
  smgrclose(file);
  write_relation_record(*newrnode, RelationFile::kTable, header);
}

// The table, or its file, was made by this very (sub)transaction.
void gcl_relation_nontransactional_truncate(Relation rel) {
  if (ddl_replaying() && relation_seam.next_relation_override == nullptr) return;
  pages_dropped(RelationFile::kTable, relation_page(rel));
  write_relation_record(rel->rd_node, RelationFile::kTable, new_table(RelationGetRelid(rel)));
}

void gcl_relation_copy_data(Relation, const RelFileNode*) {
  not_supported("SET TABLESPACE", "The rows of a gcl table are in the pool, not in a tablespace.");
}

void gcl_relation_copy_for_cluster(Relation, Relation, Relation, bool, TransactionId, TransactionId*, MultiXactId*,
                                   double*, double*, double*) {
  not_supported("VACUUM FULL and CLUSTER", "Use plain VACUUM.");
}

// As the range of block numbers: it has holes, because every primary fills extents of its own.
uint64 gcl_relation_size(Relation rel, ForkNumber fork) {
  if (fork != MAIN_FORKNUM && fork != InvalidForkNumber) return 0;
  // A worker that catches up with the log may be at a table whose pages have been given back since.
  if (ddl_replaying()) return 0;
  engine::Heap& heap = heap_of(rel);
  const uint32_t blocks = used_blocks(rel, heap);
  return blocks == 0 ? 0 : (uint64{heap.block_at(blocks - 1)} + 1) * BLCKSZ;
}

namespace {

// What the planner believes of a large table's size may be a second old: counting costs a look at the whole map.  Small
// ones are counted each time: within a second one may have grown a thousandfold, and a table believed to have a row or
// two, with an index whose size is always looked up, seems cheaper to scan than that index.
constexpr uint32_t kRememberedFrom = 256;  // blocks

struct SizeSeen {
  Oid relid, file;
  uint32_t used, range;
  TimestampTz at;
};

const SizeSeen& size_seen(Relation rel) {
  static SizeSeen seen[256];
  SizeSeen& slot = seen[RelationGetRelid(rel) % lengthof(seen)];
  const TimestampTz now = GetCurrentStatementStartTimestamp();
  if (slot.relid == RelationGetRelid(rel) && slot.file == rel->rd_node.relNode && slot.used >= kRememberedFrom &&
      now - slot.at < USECS_PER_SEC)
    return slot;
  engine::Heap& heap = heap_of(rel);
  const uint32_t used = used_blocks(rel, heap);
  slot = {RelationGetRelid(rel), rel->rd_node.relNode, used, used == 0 ? 0 : heap.block_at(used - 1) + 1, now};
  return slot;
}

double rows_per_block(Relation rel, int32* widths) {
  if (rel->rd_rel->relpages > 0 && rel->rd_rel->reltuples >= 0)
    return double(rel->rd_rel->reltuples) / rel->rd_rel->relpages;
  constexpr double kRowOverhead = MAXALIGN(engine::kRowHeaderBytes) + 4;
  const double per_block = (BLCKSZ - bufmgr::kPageBody) / (get_rel_data_width(rel, widths) + kRowOverhead);
  return Max(1.0, floor(per_block));
}

}  // namespace

// The rows' density refers to the range of block numbers, as counted by VACUUM and ANALYZE; what a scan reads is the
// pages in use.
void gcl_relation_estimate_size(Relation rel, int32* widths, BlockNumber* pages, double* tuples, double* allvisfrac) {
  *pages = 0;
  *tuples = *allvisfrac = 0;
  if (ddl_replaying()) return;
  const SizeSeen& size = size_seen(rel);
  const bool counted = rel->rd_rel->relpages > 0 && rel->rd_rel->reltuples >= 0;
  // As heap: a table never counted is taken for ten pages at least, because it will grow.
  const uint32_t used = counted ? size.used : Max(size.used, 10u);
  *pages = used;
  *tuples = rint(rows_per_block(rel, widths) * (counted ? size.range : used));
  *allvisfrac = 0;
}

}  // namespace gcl
