#include "extension/engine/heap/decision_wait.hpp"

#include <algorithm>

namespace engine {

// heap.ask-speculation-first.
Status DecisionWait::wait(const Undecided& undecided) {
  if (!undecided.made || undecided == kept_) return txns_.waiter().wait_for(undecided.by, WaitFor::kUniqueKey);
  auto open = txns_.speculation(undecided.by, undecided.tid.packed());
  if (!open) return open.error();
  if (*open) return txns_.waiter().wait_for_speculation(**open);
  kept_ = undecided;
  return {};
}

bool RowReads::known_before(const RowHeader& row) const {
  if (row.creator.kind() != RowTxnKind::kInserted) return true;
  const TxnId maker = row.creator.id();
  return txns_.current().is_mine(maker) || txns_.known_status(maker) ||
         std::find(learned_.begin(), learned_.end(), maker) != learned_.end();
}

// heap.commit-needs-younger-read.
Result<bool> RowReads::sees_now(const RowHeader& row, RowPlace at, const Snapshot& snapshot, TxnId* running) {
  const bool sure = known_before(row);
  auto seen = visible(txns_, row, at, snapshot, running);
  if (sure || !seen || !*seen || (running != nullptr && running->valid())) return seen;
  learned_.push_back(row.creator.id());
  again_ = true;
  return seen;
}

}  // namespace engine
