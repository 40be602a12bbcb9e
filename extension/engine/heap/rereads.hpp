// Rereads: whether a reader has to read rows again, because a maker's commit was learned after they were copied
// (rules.md, heap.commit-needs-younger-read).  It lives as long as the reader reads the same rows.
//
//   Rereads reads(txns);
//   do {
//     reads.begin();
//     copy the version; seen = reads.sees(version, at, snapshot, &running)
//   } while (reads.again());
#pragma once

#include <vector>

#include "bufmgr/page_holds.hpp"
#include "extension/engine/heap/row.hpp"
#include "extension/engine/heap/visibility.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

class Rereads {
 public:
  explicit Rereads(TxnSystem& txns) : txns_(txns) {}
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
