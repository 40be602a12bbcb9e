#include "extension/pg/txn/xact.hpp"

#include <algorithm>
#include <utility>

#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/commit_hold.hpp"
#include "extension/pg/runtime/mixed_commits.hpp"
#include "extension/pg/runtime/orphan.hpp"
#include "extension/pg/runtime/own_wait.hpp"
#include "extension/pg/runtime/raise.hpp"
#include "extension/pg/runtime/stop_points.hpp"
#include "extension/pg/txn/deferred_free.hpp"
#include "extension/pg/txn/transaction_parts.hpp"

extern "C" {
#include "storage/ipc.h"
}

namespace gcl {

namespace {

constexpr int kDoubtsPauses = 3000;  // of 10 ms, until the member worker is not waited for any more

TransactionCallbacks parts[int(TransactionPart::kCount)];
// One by one, not in a loop: every transaction of the server passes here.
TransactionCallbacks& index_sizes = parts[int(TransactionPart::kIndexSizes)];
TransactionCallbacks& ddl = parts[int(TransactionPart::kDdl)];

template <class Callback>
void call(Callback callback) {
  if (callback) callback();
}

// What this process has read of dead primaries' rings is of no use when they may join again.
void forget_repaired() noexcept {
  static uint64_t seen = 0;
  if (node_pool() == nullptr) return;
  if (const uint64_t view = node_pool()->coherence_node().view(); std::exchange(seen, view) != view)
    node_redo()->forget_absent();
}

void forget() noexcept {
  forget_repaired();
  call(ddl.forget);
  call(index_sizes.forget);
  forget_transaction();
}

// extension.doubts-decided-first.  Only while the server starts.
void wait_until_doubts_are_over() {
  NodeState* node = node_state();
  if (node == nullptr || node_pool() == nullptr || node->doubts.load(std::memory_order_acquire) == Doubts::kOver)
    return;
  if (!TransactionIdIsValid(GetTopTransactionIdIfAny())) return;
  for (int i = 0; node->doubts.load(std::memory_order_acquire) != Doubts::kOver && !node_pool()->fenced(); ++i) {
    Doubts open = Doubts::kOpen;
    if (i > kDoubtsPauses) (void)node->doubts.compare_exchange_strong(open, Doubts::kOver);
    pause_in_wait(10000);
  }
}

bool forbids_prepare(const TransactionCallbacks& part) { return part.forbids_prepare && part.forbids_prepare(); }

// Rows, or what all primaries share.
bool changes_anything() {
  const engine::TxnSystem* txns = attached_txns();
  return transaction_writes() || any_deferred_free() ||
         std::any_of(std::begin(parts), std::end(parts), forbids_prepare) ||
         (txns != nullptr && txns->current().wrote() && !txns->current().only_holds());
}

// What others drop is recorded when all have said what they drop, and before the others are asked.
void pre_commit() {
  wait_until_doubts_are_over();
  keep_holds(changes_anything());  // serializable.kept-or-taken: before anything is done for the commit
  call(index_sizes.pre_commit);
  record_deferred_frees();
  call(ddl.pre_commit);
  if (TransactionIdIsValid(GetTopTransactionIdIfAny())) enter_commit();
  engine::TxnSystem* txns = attached_txns();
  if (txns == nullptr || !txns->current().wrote() || txns->current().only_holds()) return;
  until_ok(nullptr, [&] { return txns->prepare(mixed_commit_xid()); });
  mixed_commit_begins();
  stop_here(StopPoint::kXactPrepared);
}

// The local commit record is on disk: nothing may fail any more.
void commit() noexcept {
  engine::TxnSystem* txns = attached_txns();
  if (txns != nullptr && txns->current().only_holds()) {
    (void)txns->commit();
  } else if (txns != nullptr && txns->current().wrote()) {
    stop_here(StopPoint::kXactLocallyCommitted);
    mixed_commit_publishes();
    for (;;) {
      auto done = txns->commit();
      if (done.ok()) break;
      if (done.error() == coherence::Errc::kInterrupted) continue;
      // The others may have ended it otherwise by now, and its client is not to be told that it is committed.
      if (!node_pool()->fenced() || node_pool()->coherence_node().is_cut_off())
        end_as_crashed("the pool could not be told of a commit; this primary joins it again");
      ereport(WARNING, errcode(ERRCODE_CRASH_SHUTDOWN),
              errmsg("the transaction was committed, but the gcl pool is fenced: %s", fence_reason()));
      break;
    }
    txns->session().coherence().serve_flushed();  // the log is, and the redo is in the pool
    mixed_commit_ends();
  }
  end_holds();
  leave_commit();  // before others are waited for, whose commits may be held
  call(ddl.committed);
  call(index_sizes.committed);
  deferred_frees_ended();
  forget();
}

// A backend that ends because its postmaster died would still roll back in order.  The death is made known first: no
// process that waits for this transaction may go on as if the server had been stopped cleanly.
void end_if_orphaned() {
  if (proc_exit_inprogress) (void)postmaster_gone();
}

void abort() noexcept {
  end_if_orphaned();
  mixed_commit_ends();
  engine::TxnSystem* txns = attached_txns();
  if (txns != nullptr) {
    txns->session().release_all();  // an ERROR ran no destructors
    txns->abort();
  }
  end_holds();
  leave_commit();
  call(ddl.aborted);
  call(index_sizes.aborted);
  own_wait_rolled_back();
  deferred_frees_ended();
  forget();
}

bool txns_hold() { return attached_txns() != nullptr && attached_txns()->current().only_holds(); }

void on_transaction(XactEvent event, void*) {
  switch (event) {
    case XACT_EVENT_PRE_COMMIT:
      return pre_commit();
    case XACT_EVENT_COMMIT:
      return commit();
    case XACT_EVENT_ABORT:
      return abort();
    case XACT_EVENT_PARALLEL_COMMIT:
    case XACT_EVENT_PARALLEL_ABORT:
      return forget();
    case XACT_EVENT_PRE_PREPARE:
      // Pages made and dropped, and the other primaries' halves of DDL, end with this session's own commit.
      if (changes_anything() || (attached_txns() != nullptr && attached_txns()->current().wrote()))
        ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                errmsg("cannot PREPARE a transaction that has changed gcl tables or shared objects"),
                txns_hold() ? errdetail("It is SERIALIZABLE, and holds what it has read of gcl tables.") : 0,
                errhint("Use COMMIT."));
      break;
    case XACT_EVENT_PREPARE:
      end_holds();
      return forget();
    case XACT_EVENT_PARALLEL_PRE_COMMIT:
      break;
  }
}

void on_savepoint(SubXactEvent event, SubTransactionId, SubTransactionId, void*) {
  engine::TxnSystem* txns = attached_txns();
  const int level = GetCurrentTransactionNestLevel();
  switch (event) {
    case SUBXACT_EVENT_START_SUB:
      if (txns == nullptr) break;
      if (auto begun = txns->sub_begin(level); !begun) raise(begun.error(), nullptr);
      break;
    case SUBXACT_EVENT_COMMIT_SUB:
      if (txns != nullptr) txns->sub_commit(level);
      savepoint_ended(level);
      deferred_frees_sub_commit(level);
      break;
    case SUBXACT_EVENT_ABORT_SUB:
      own_wait_rolled_back();
      if (txns != nullptr) {
        txns->session().release_all();
        txns->sub_abort(level);
      }
      savepoint_ended(level);
      deferred_frees_sub_abort(level);
      break;
    case SUBXACT_EVENT_PRE_COMMIT_SUB:
      break;
  }
}

}  // namespace

void install(TransactionPart part, const TransactionCallbacks& callbacks) { parts[int(part)] = callbacks; }

void install_transaction_callbacks() {
  RegisterXactCallback(on_transaction, nullptr);
  RegisterSubXactCallback(on_savepoint, nullptr);
}

}  // namespace gcl
