// Settling: waiting for what stands between a reader and knowing whether a version is, or stays, there (README,
// S1..S3). Lives as long as the reader looks at the same rows again and again.
//
//   Settling settling(txns);
//   for (;;) {
//     look at the version; if no running transaction made or ended it: done
//     GCL_TRY(settling.wait({.by = id, .tid = tid, .made = whether it made the version}));
//   }
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

class Settling {
 public:
  explicit Settling(TxnSystem& txns) : txns_(txns) {}
  // Then the row is to be looked at again.  REQUIRES: no guard held.
  Status wait(const Undecided& undecided);

 private:
  TxnSystem& txns_;
  Undecided kept_{};  // a version that its maker could no more take back before it was looked at last
};

}  // namespace engine
