// VACUUM of an index: removes the entries whose rows are gone.
#include "extension/pg/indexam/callbacks.hpp"
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

}  // namespace

IndexBulkDeleteResult* blink_ambulkdelete(IndexVacuumInfo* info, IndexBulkDeleteResult* stats,
                                          IndexBulkDeleteCallback dead, void* dead_state) {
  if (stats == nullptr) stats = static_cast<IndexBulkDeleteResult*>(palloc0(sizeof(IndexBulkDeleteResult)));
  DeadRows rows(dead, dead_state);
  const engine::blink::RemoveResult done =
      *until_done(info->index, [&] { return open_tree(info->index).remove_if(session(), rows); });
  stats->estimated_count = false;
  stats->num_pages = static_cast<BlockNumber>(done.leaves);
  stats->num_index_tuples = static_cast<double>(done.kept);
  stats->tuples_removed += static_cast<double>(done.removed);
  return stats;
}

IndexBulkDeleteResult* blink_amvacuumcleanup(IndexVacuumInfo*, IndexBulkDeleteResult* stats) {
  // Nothing to do: there are no half-dead pages, and without a bulk delete the counts in pg_class still hold.
  return stats;
}

bool blink_amcanreturn(Relation, int) { return true; }

}  // namespace gcl
