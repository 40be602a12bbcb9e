#include "extension/pg/txn/snapshot_renewal.hpp"

extern "C" {
#include "storage/procarray.h"
}

namespace gcl {

namespace {

MemoryContext lists = nullptr;  // Goes with the transaction (pg_txn.lists-lie-apart)
LocalTransactionId lists_of = InvalidLocalTransactionId;

TransactionId* copy_list(const TransactionId* list, size_t count) {
  if (count == 0) return nullptr;
  if (lists_of != MyProc->lxid) {
    lists = AllocSetContextCreate(TopTransactionContext, "gcl snapshots", ALLOCSET_SMALL_SIZES);
    lists_of = MyProc->lxid;
  }
  auto* copy = static_cast<TransactionId*>(MemoryContextAlloc(lists, count * sizeof(TransactionId)));
  memcpy(copy, list, count * sizeof(TransactionId));
  return copy;
}

}  // namespace

void renew_as(Snapshot snapshot, Snapshot renewed) {
  const bool has_sub = !renewed->suboverflowed || renewed->takenDuringRecovery;
  snapshot->xip = copy_list(renewed->xip, renewed->xcnt);
  snapshot->subxip = has_sub ? copy_list(renewed->subxip, size_t(renewed->subxcnt)) : nullptr;
  snapshot->xcnt = renewed->xcnt;
  snapshot->subxcnt = renewed->subxcnt;
  snapshot->suboverflowed = renewed->suboverflowed;
  snapshot->xmax = renewed->xmax;
  snapshot->snapXactCompletionCount = renewed->snapXactCompletionCount;
}

void renew(Snapshot snapshot) {
  static SnapshotData now = {.snapshot_type = SNAPSHOT_MVCC};
  // One of the server's own is filled where it is; nothing keeps it by its xmin.
  if (!snapshot->copied)
    (void)GetSnapshotData(snapshot);
  else
    renew_as(snapshot, GetSnapshotData(&now));
}

void forget_renewed() noexcept {
  if (lists_of == MyProc->lxid && lists != nullptr) MemoryContextReset(lists);
}

}  // namespace gcl
