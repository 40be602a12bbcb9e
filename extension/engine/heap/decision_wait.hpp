// DecisionWait: waiting for what stands between a reader and knowing whether a version is, or stays, there (rules.md,
// heap.ask-speculation-first).  It lives as long as the reader reads the same rows again and again.
//
//   DecisionWait decision(txns);
//   while (a running transaction has made or ended the version that was read)
//     GCL_TRY(decision.wait({.by = id, .tid = tid, .made = whether it made the version}));
#pragma once

#include "extension/engine/heap/row.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

// A running transaction that has made, or else ended, the version at `tid`.
struct Undecided {
  TxnId by;
  Tid tid;
  bool made = false;
  bool operator==(const Undecided&) const = default;
};

class DecisionWait {
 public:
  explicit DecisionWait(TxnSystem& txns) : txns_(txns) {}
  // Then the row is to be read again.  REQUIRES: no guard held.
  Status wait(const Undecided& undecided);

 private:
  TxnSystem& txns_;
  Undecided kept_{};  // a version that its maker could no more take back before it was read last
};

}  // namespace engine
