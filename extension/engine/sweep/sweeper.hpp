// Sweeper: forgets ids of its node that were rolled back, once no page names them (txn.forget-unnamed-ids).
//
// sweep.all-pages: A pass goes over all pages of the pool there are, by the allocator's maps: it asks no list of
//     relations, so it also passes what was dropped, half made or is never vacuumed.  A page that comes later has rows
//     of later ids.
// sweep.begins-when-long: A pass begins when the node's list is long, and concerns ids that were frozen by then.  On
//     the pages, makers that were rolled back become kAborted, and ends that were rolled back become none, by
//     mini-transactions.  Locks of ended ids stay: whether their id has committed or not, they do not count.
// sweep.forget-after-readers: The node tells all (TxnSystem::forget_aborted) what it has passed only when
//     - every session that may have read a page as it was before has ended: each of them has a snapshot, which the
//       horizon passes; prune and VACUUM, which have none, act on a page's version, which a change of the page moves;
//     - all ids that were assigned when the pass began are frozen, among them the savepoints of those transactions: so
//       no reader infers what became of one id from another that is forgotten;
//     - no reclaim record, and nothing of the host's, names such an id.
//
//   Sweeper sweeper(txns, names, Sweeper::pages_max(txns));
//   while (*sweeper.step()) {}              // in a worker; false: nothing to do, or not yet: again in a second
//
// One at a time per node.  A pass that is not carried through (the process ends) is lost, and begun anew.
#pragma once

#include "extension/engine/txn/transaction.hpp"

namespace engine {

// What names transactions elsewhere than on heap pages and in reclaim lists: the host's logs.
class NamedIds {
 public:
  virtual ~NamedIds() = default;
  // Whether some id of this node, up to `upto`, is named that was rolled back.
  virtual Result<bool> any_rolled_back(uint64_t upto) = 0;
};

class Sweeper {
 public:
  Sweeper(TxnSystem& txns, NamedIds& names, uint64_t pages_max) : txns_(txns), names_(names), pages_max_(pages_max) {}
  // How many pages the list of each node may have before it is worth a pass: together a 256th of the pool.
  static uint64_t pages_max(TxnSystem& txns);

  // Some pages, or the next thing to do.  An error passes: call again.
  Result<bool> step();
  uint64_t passes() const { return passes_; }  // carried through

 private:
  enum class Phase : uint8_t { kIdle, kPass, kWait };
  Result<bool> begin();
  Result<bool> pass_some();
  Result<bool> forget();
  Result<bool> clean(PageId page);
  Result<bool> bad(TxnId id);
  Result<bool> named();

  TxnSystem& txns_;
  NamedIds& names_;
  const uint64_t pages_max_;
  Phase phase_ = Phase::kIdle;
  uint64_t upto_ = 0;      // the pass concerns ids up to here
  uint64_t assigned_ = 0;  // ids up to here had been assigned when it began
  PageId next_{};          // kPass: where it goes on
  Cts passed_at_{};        // kWait: sessions with snapshots up to here may have read pages before
  uint64_t passes_ = 0;
};

}  // namespace engine
