#include "extension/pg/txn/server_commits.hpp"

#include "extension/pg/boundary/pg.hpp"
#include "extension/pg/boundary/pg_call.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/journal.hpp"
#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/orphan.hpp"
#include "extension/pg/runtime/until_done.hpp"

extern "C" {
#include "access/transam.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
}

namespace gcl {

namespace {

constexpr long kJournalPauseUs = 10'000;

// As txid_status(): the log may be truncated only while the lock is not held.  A number that the server has not given
// (again) was of a transaction of which nothing is in its log: it did not commit.
bool commit_log_has(FullTransactionId full, bool* committed) {
  const FullTransactionId next = ReadNextFullTransactionId();
  if (!FullTransactionIdPrecedes(full, next)) return true;
  if (U64FromFullTransactionId(next) - U64FromFullTransactionId(full) > uint64_t{MaxTransactionId} / 2) return false;
  const TransactionId xid = XidFromFullTransactionId(full);
  LWLockAcquire(XactTruncationLock, LW_SHARED);
  const bool has = TransactionIdIsNormal(xid) && !TransactionIdPrecedes(xid, ShmemVariableCache->oldestClogXid);
  if (has) *committed = TransactionIdDidCommit(xid);
  LWLockRelease(XactTruncationLock);
  return has;
}

}  // namespace

coherence::Result<bool> ServerCommits::committed(uint64_t host_xid) {
  if (log_ == CommitLog::kLost) return false;
  bool committed = false;
  const bool known = log_ == CommitLog::kOwn && pg_call([=, &committed] {
                       return commit_log_has(FullTransactionIdFromU64(host_xid), &committed);
                     });
  if (!known) {
    pg_call([=] {
      ereport(LOG, errmsg("gcl: this server's commit log does not tell what became of its transaction " UINT64_FORMAT
                          ", which is in doubt in the pool",
                          host_xid));
    });
    return coherence::Errc::kCorrupt;
  }
  return committed;
}

// The journal is held for a moment only, or by a process that is stopped.
coherence::Status ServerCommits::about_to_decide(engine::TxnId id, bool committed) {
  for (coherence::Problem problem;;) {
    coherence::Status noted = note_decision(pool_, id, committed, &problem);
    if (noted.error() != coherence::Errc::kBusy) {
      if (!noted) pg_call([&] { ereport(LOG, errmsg("gcl: a decision could not be noted: %s", problem.text)); });
      return noted;
    }
    pg_call([] { pause_in_wait(kJournalPauseUs); });
  }
}

bool ServerCommits::was_decided(uint64_t host_xid, bool committed) {
  if (log_ == CommitLog::kForeign) return false;
  if (log_ == CommitLog::kLost) return true;  // nothing is left that could differ
  bool here = false;
  const bool known = pg_call([=, &here] { return commit_log_has(FullTransactionIdFromU64(host_xid), &here); });
  if (!known || here == committed) return true;
  pg_call([=] {
    ereport(WARNING, errcode(ERRCODE_DATA_CORRUPTED),
            errmsg("gcl: transaction " UINT64_FORMAT
                   " was %s by this server, and %s in the pool while this server was away",
                   host_xid, here ? "committed" : "rolled back", committed ? "committed" : "rolled back"),
            errdetail("gcl_resolve_in_doubt() decided it: what it changed in gcl tables is %s, what it changed in this "
                      "server's other tables is %s.",
                      committed ? "there" : "not there", here ? "there" : "not there"),
            errhint("Bring these tables into line by hand."));
  });
  return true;
}

void decide_doubts(CommitLog log) {
  std::atomic<Doubts>& doubts = node_state()->doubts;
  Doubts open = Doubts::kOpen;
  const bool decides = doubts.compare_exchange_strong(open, Doubts::kBeingDecided);
  ServerCommits commits(decides ? log : CommitLog::kForeign, *node_pool());
  PG_TRY();
  {
    until_ok(nullptr, [&] { return txns().resolve_former_incarnation(&commits); });
  }
  PG_CATCH();
  {
    doubts.store(decides ? Doubts::kOpen : Doubts::kOver);
    PG_RE_THROW();
  }
  PG_END_TRY();
  doubts.store(Doubts::kOver, std::memory_order_release);  // pairs with wait_until_doubts_are_over()
}

}  // namespace gcl
