#include "extension/engine/heap/rereads.hpp"

#include <algorithm>

namespace engine {

bool Rereads::known_before(const RowHeader& row) const {
  if (row.creator.kind() != RowTxnKind::kInserted) return true;
  const TxnId maker = row.creator.id();
  return txns_.current().is_mine(maker) || txns_.known_status(maker) ||
         std::find(learned_.begin(), learned_.end(), maker) != learned_.end();
}

// heap.commit-needs-younger-read.
Result<bool> Rereads::sees_now(const RowHeader& row, RowPlace at, const Snapshot& snapshot, TxnId* running) {
  const bool sure = known_before(row);
  auto seen = visible(txns_, row, at, snapshot, running);
  if (sure || !seen || !*seen || (running != nullptr && running->valid())) return seen;
  learned_.push_back(row.creator.id());
  again_ = true;
  return seen;
}

}  // namespace engine
