// VACUUM of an index: removes the entries whose rows are gone, and gives empty pages back.
#include <utility>

#include "extension/engine/txn/transaction.hpp"
#include "extension/pg/indexam/callbacks.hpp"
#include "extension/pg/indexam/index_pages.hpp"
#include "extension/pg/indexam/open.hpp"

extern "C" {
#include "utils/rel.h"
}

namespace gcl {
namespace {

class DeadRows final : public engine::blink::TidPredicate {
 public:
  DeadRows(IndexBulkDeleteCallback dead, void* state) : dead_(dead), state_(state) {}
  bool operator()(engine::Tid tid) override {
    ItemPointerData pointer;
    ItemPointerSet(&pointer, tid.block, tid.offset);
    return dead_(&pointer, state_);
  }

 private:
  IndexBulkDeleteCallback dead_;
  void* state_;
};

class ClusterHorizon final : public engine::blink::Horizon {
 public:
  coherence::Result<uint64_t> pass_moment() override {
    const auto moment = txns().pass_moment();
    if (!moment) return moment.error();
    return moment->value;
  }
  coherence::Result<uint64_t> now(uint64_t wanted) override {
    auto horizon = txns().refresh_horizon(engine::Cts{wanted});
    if (!horizon) return horizon.error();
    return horizon->value;
  }
};

// Pages that the last VACUUM has taken out, mostly: a few milliseconds pass until no session can be on the way to them.
uint64_t recycle_pages(Relation index) {
  ClusterHorizon horizon;
  return until_done(index, [&] { return open_tree(index).recycle(session(), horizon); })->freed;
}

bool skipped_leaves = false;

}  // namespace

void note_skipped_leaves() noexcept { skipped_leaves = true; }
bool take_skipped_leaves() noexcept { return std::exchange(skipped_leaves, false); }

IndexBulkDeleteResult* blink_ambulkdelete(IndexVacuumInfo* info, IndexBulkDeleteResult* stats,
                                          IndexBulkDeleteCallback dead, void* dead_state) {
  if (stats == nullptr) stats = static_cast<IndexBulkDeleteResult*>(palloc0(sizeof(IndexBulkDeleteResult)));
  DeadRows rows(dead, dead_state);
  const engine::blink::RemoveResult done =
      *until_done(info->index, [&] { return open_tree(info->index).remove_if(session(), rows); });
  if (done.skipped) note_skipped_leaves();
  stats->estimated_count = false;
  stats->num_pages = static_cast<BlockNumber>(done.leaves);
  stats->num_index_tuples = static_cast<double>(done.kept);
  stats->tuples_removed += static_cast<double>(done.removed);
  stats->pages_newly_deleted += static_cast<BlockNumber>(done.deleted);
  if (done.deleted > 0) stats->pages_free += static_cast<BlockNumber>(recycle_pages(info->index));
  return stats;
}

// Called by VACUUM while it has the table for itself in the whole cluster, and by ANALYZE, which has not.
IndexBulkDeleteResult* blink_amvacuumcleanup(IndexVacuumInfo* info, IndexBulkDeleteResult* stats) {
  if (!info->analyze_only) (void)recycle_pages(info->index);
  return stats;  // without a bulk delete the counts in pg_class still hold
}

bool blink_amcanreturn(Relation, int) { return true; }

}  // namespace gcl
