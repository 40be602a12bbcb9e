#include "extension/pg/txn/snapshot_renewal.hpp"

extern "C" {
#include "access/xact.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"
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

// The server's own snapshot of READ COMMITTED, which it fills for each statement, and copies.  Null: not seen yet.
Snapshot original = nullptr;

bool equal_lists(const TransactionId* a, const TransactionId* b, size_t count) {
  return count == 0 || memcmp(a, b, count * sizeof(TransactionId)) == 0;
}

bool show_the_same(Snapshot a, Snapshot b) {
  const bool has_sub = !a->suboverflowed || a->takenDuringRecovery;
  return a->xmin == b->xmin && a->xmax == b->xmax && a->xcnt == b->xcnt && a->subxcnt == b->subxcnt &&
         a->suboverflowed == b->suboverflowed && a->takenDuringRecovery == b->takenDuringRecovery &&
         equal_lists(a->xip, b->xip, a->xcnt) && (!has_sub || equal_lists(a->subxip, b->subxip, size_t(a->subxcnt)));
}

Snapshot taken_now() {
  static SnapshotData now = {.snapshot_type = SNAPSHOT_MVCC};
  const bool may_be_seen =
      original == nullptr && XactIsoLevel == XACT_READ_COMMITTED && !IsInParallelMode() && !HistoricSnapshotActive();
  return may_be_seen ? original = GetTransactionSnapshot() : GetSnapshotData(&now);
}

}  // namespace

bool recognize(Snapshot copy) {
  if (original == nullptr || !show_the_same(copy, original)) return false;
  copy->snapXactCompletionCount = original->snapXactCompletionCount;
  return true;
}

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
  // One of the server's own is filled where it is; nothing keeps it by its xmin.
  if (!snapshot->copied)
    (void)GetSnapshotData(snapshot);
  else
    renew_as(snapshot, taken_now());
}

void forget_renewed() noexcept {
  if (lists_of == MyProc->lxid && lists != nullptr) MemoryContextReset(lists);
}

}  // namespace gcl
