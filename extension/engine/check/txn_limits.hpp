// TxnLimits: whether an id or a commit timestamp that a page names can exist.
//
// Node ids, marks and the clock only grow: what was read once bounds from below what is there now.  So a word of the
// pool is read only when a page names something beyond what is known (check.ids-were-assigned).
#pragma once

#include <vector>

#include "extension/engine/txn/transaction.hpp"

namespace engine {

class TxnLimits {
 public:
  explicit TxnLimits(TxnSystem& txns) : txns_(txns), reserved_(txns.words().nodes()) {}

  // Whether some node may have assigned the id.  REQUIRES: the page that names it was read before.
  Result<bool> may_exist(TxnId id) {
    if (id.node().value >= reserved_.size() || id.sequence() == 0) return false;
    uint64_t& known = reserved_[id.node().value];
    if (id.sequence() > known) GCL_TRY(load(txns_.words().reserved(id.node()), &known));
    return id.sequence() <= known;
  }
  // The same of a timestamp of a commit.
  Result<bool> may_exist(Cts cts) {
    if (cts.value > clock_) GCL_TRY(load(txns_.words().clock(), &clock_));
    return cts >= kFrozenCts && cts.value <= clock_;
  }

 private:
  Status load(coherence::PoolAddress word, uint64_t* to) {
    auto value = txns_.pool().memory(txns_.session()).load(word);
    if (!value) return value.error();
    *to = *value;
    return {};
  }

  TxnSystem& txns_;
  std::vector<uint64_t> reserved_;  // by node
  uint64_t clock_ = 0;
};

}  // namespace engine
