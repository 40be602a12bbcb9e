// StatusBatch: the statuses of many ids in one round trip, for a reader that is about to need them one by one.
//
// txn.statuses-in-batch: What a batch finds final is in the session's cache.  What it finds running, status() takes
//     for running as long as the batch object is there: such a transaction commits after every snapshot that was there
//     before, and its versions are dead to nobody.  A reader that waits for an end, or looks for the newest, asks
//     without one.
#pragma once

#include <algorithm>
#include <vector>

#include "extension/engine/txn/transaction.hpp"

namespace engine {

class StatusBatch {
 public:
  // One at a time per session.
  explicit StatusBatch(TxnSystem& txns) : txns_(txns) {
    VERIFY(txns.found_running_ == nullptr);
    txns.found_running_ = &running_;
  }
  ~StatusBatch() { txns_.found_running_ = nullptr; }
  StatusBatch(const StatusBatch&) = delete;
  StatusBatch& operator=(const StatusBatch&) = delete;

  // Whether status() would have to read it, and ask() has not been of no use.
  bool is_unknown(TxnId id) const {
    return !txns_.current().is_mine(id) && !txns_.cached_word(id) && !has(running_, id) && !has(left_, id) &&
           !txns_.known_status(id);
  }
  bool full() const { return count_ == kIdsMax; }
  // REQUIRES: it is unknown, and there is room.
  void add(TxnId id) {
    if (std::find(ids_, ids_ + count_, id) == ids_ + count_) ids_[count_++] = id;
  }
  // Of those that were added since the last time.  Not all are known then: one word does not tell all of some, and
  // those are left to status().
  Status ask();

 private:
  static constexpr int kIdsMax = coherence::kBatchOpsMax / 2;  // each may be of another node, with a mark of its own
  static bool has(const std::vector<TxnId>& ids, TxnId id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  }

  TxnSystem& txns_;
  TxnId ids_[kIdsMax];
  int count_ = 0;
  std::vector<TxnId> running_, left_;
};

}  // namespace engine
