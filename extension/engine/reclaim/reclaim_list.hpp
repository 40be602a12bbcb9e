// The reclaim list of a node, in the pool: relations that its running transactions are making, and that they drop.
//
// reclaim.no-page-lost: A record is written by the mini-transaction that allocates the relation's first page, or before
//     the transaction that drops the relation is prepared.  The record goes with the mini-transaction that frees that
//     page, or when the relation stays.  So at every moment a page of a relation is reachable from a catalog's
//     relation or from a record, or it is free.
// reclaim.status-log-decides: A record names a transaction or savepoint, and the status log decides it: made and rolled
//     back, or dropped and committed: its pages are freed.  The other way round: it is forgotten.  No process has to be
//     told, and a node that dies or leaves leaves nothing that another one could not decide.
// reclaim.lock-holder-removes: Sessions of the node add records, to the root page and to the page behind it.  Only the
//     session that has the lock of the list (txn.session-lock-token) removes records and pages, and frees what they
//     name.  A page that goes is closed first.
//
//   root -> newest page -> ... -> oldest page
#pragma once

#include <span>

#include "extension/engine/reclaim/reclaim_page.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

struct Dropped {
  ReclaimKind kind;
  PageId page;
};

// Of the session's own node; for the transaction that runs.
class ReclaimList {
 public:
  explicit ReclaimList(TxnSystem& txns) : txns_(txns) {}
  // A fresh page that is given back unless `by` commits.  After kInterrupted, call again.
  Result<PageId> allocate(TxnId by, ReclaimKind kind, bufmgr::PageUse use);
  // Relations that go when `by` commits; all or as many as are taken off the front of `dropped`.  After kInterrupted,
  // call again.
  Status add(TxnId by, std::span<const Dropped>& dropped);

 private:
  Result<PageId> root();
  Result<PageId> page_with_room();
  Result<bool> has_room(PageId page, uint64_t* next);

  TxnSystem& txns_;
};

}  // namespace engine
