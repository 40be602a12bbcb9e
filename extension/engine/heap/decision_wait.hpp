// DecisionWait: waiting for what stands between a reader and knowing whether a version is, or stays, there (rules.md,
// heap.ask-speculation-first), and RowReads: which of a reader's repeated reads is young enough to believe
// (heap.commit-needs-younger-read).  Both live as long as the reader reads the same rows again and again.
//
//   DecisionWait decision(txns);
//   RowReads reads(txns);
//   for (;;) {
//     reads.begin();
//     copy the version; seen = reads.sees(version, snapshot, &running)
//     if (reads.again()) continue;
//     if no running transaction made or ended it: done
//     GCL_TRY(decision.wait({.by = id, .tid = tid, .made = whether it made the version}));
//   }
#pragma once

#include <vector>

#include "bufmgr/page_holds.hpp"
#include "extension/engine/heap/row.hpp"
#include "extension/engine/heap/visibility.hpp"
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

class RowReads {
 public:
  explicit RowReads(TxnSystem& txns) : txns_(txns) {}
  // REQUIRES: the rows are copied after this.
  void begin() {
    again_ = false;
    parts_ = 0;
  }
  // As visible().  An MVCC snapshot is older than the copy: a maker that had still to commit then is not seen, whatever
  // is known by now.
  Result<bool> sees(const RowHeader& row, RowPlace at, const Snapshot& snapshot, TxnId* running) {
    parts_ |= bufmgr::part(at.line);
    const bool newest = snapshot.kind == SnapshotKind::kDirty || snapshot.kind == SnapshotKind::kSelf;
    return newest ? sees_now(row, at, snapshot, running) : visible(txns_, row, at, snapshot, running);
  }
  // Whether something that was seen might have been taken back before its maker committed.
  bool again() const { return again_; }
  // Where the versions lie that were looked at since begin().
  bufmgr::Parts parts() const { return parts_; }

 private:
  Result<bool> sees_now(const RowHeader& row, RowPlace at, const Snapshot& snapshot, TxnId* running);
  bool known_before(const RowHeader& row) const;

  TxnSystem& txns_;
  std::vector<TxnId>
      learned_;  // makers whose commit an earlier read has learned; the cache of statuses may have lost it
  bufmgr::Parts parts_ = 0;
  bool again_ = false;
};

}  // namespace engine
