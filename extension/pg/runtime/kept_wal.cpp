#include "extension/pg/runtime/kept_wal.hpp"

#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/journal.hpp"
#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/orphan.hpp"
#include "extension/pg/runtime/raise.hpp"
#include "recovery/restart_journal.hpp"

extern "C" {
#include "access/xlog.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
}

namespace gcl {

namespace {

using coherence::Errc;

constexpr const char* kSlot = "gcl";
constexpr long kJournalPauseUs = 10'000;  // another process writes there

// --- the slot --------------------------------------------------------------------------------------------------------
// Between acquire() and ReplicationSlotRelease() it is MyReplicationSlot; an ERROR ends the worker, which releases it.

bool acquire() {
  if (SearchNamedReplicationSlot(kSlot, true) == nullptr) return false;
  ReplicationSlotAcquire(kSlot, true);
  if (SlotIsPhysical(MyReplicationSlot)) return true;
  ereport(ERROR, errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("gcl: replication slot \"%s\" is a logical one", kSlot),
          errdetail("This primary needs a physical slot of that name, for the WAL since the pool was last saved."),
          errhint("Drop it, with pg_drop_replication_slot(), and let its subscriber use another name."));
}

XLogRecPtr position() {
  SpinLockAcquire(&MyReplicationSlot->mutex);
  const XLogRecPtr at = MyReplicationSlot->data.restart_lsn;
  SpinLockRelease(&MyReplicationSlot->mutex);
  return at;
}

XLogRecPtr release() {
  const XLogRecPtr at = position();
  ReplicationSlotRelease();
  return at;
}

void advance(XLogRecPtr to) {
  SpinLockAcquire(&MyReplicationSlot->mutex);
  MyReplicationSlot->data.restart_lsn = to;
  SpinLockRelease(&MyReplicationSlot->mutex);
  ReplicationSlotMarkDirty();
  ReplicationSlotSave();
  ReplicationSlotsComputeRequiredLSN();  // now checkpoints may remove what is before
}

bool any_slot_free() {
  bool found = false;
  LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
  for (int i = 0; i < max_replication_slots && !found; ++i) found = !ReplicationSlotCtl->replication_slots[i].in_use;
  LWLockRelease(ReplicationSlotControlLock);
  return found;
}

XLogRecPtr make_slot() {
  if (!any_slot_free())
    ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
            errmsg("gcl: no replication slot is free for the WAL of this primary"),
            errdetail("All %d are in use, and gcl tables cannot be used before there is one named \"%s\", which keeps "
                      "the WAL since the pool was last saved.",
                      max_replication_slots, kSlot),
            errhint("Raise max_replication_slots, or drop a slot of pg_replication_slots that nobody needs."));
  ReplicationSlotCreate(kSlot, false, RS_EPHEMERAL, false);  // so that none without a position outlives us
  ReplicationSlotReserveWal();
  ReplicationSlotPersist();
  return release();
}

// It was dropped, or passed max_slot_wal_keep_size, or this is another data directory.
void tell_of_loss(bool needed) {
  ereport(WARNING, errmsg("gcl: replication slot \"%s\" has not kept the WAL of this primary, and is made anew", kSlot),
          errdetail(needed ? "Until the pool is saved again, it cannot be made out of the primaries' WALs."
                           : "The pool was saved since, so nothing is missing."),
          errhint("To stop all primaries in order saves the pool. A larger max_slot_wal_keep_size keeps more WAL."));
}

// The position from which on WAL is kept.  `before_us`: no record of this start of the server is before it; `needed`:
// some that are matter.
XLogRecPtr keep_from(XLogRecPtr before_us, bool needed) {
  const bool there = acquire();
  if (there && position() != InvalidXLogRecPtr) {
    if (!needed && position() < before_us) advance(before_us);
    return release();
  }
  if (there) {
    ReplicationSlotRelease();
    ReplicationSlotDrop(kSlot, true);
  }
  if (there || needed) tell_of_loss(needed);
  return make_slot();
}

// --- the journal -----------------------------------------------------------------------------------------------------

[[noreturn]] void fail_to_note(Errc outcome, const coherence::Problem& problem) {
  ereport(ERROR, errcode(journal_sqlstate(outcome)), errmsg("gcl: the join of this primary could not be noted"),
          errdetail("%s", problem.text),
          errhint("The server must be able to write beside \"%s\". It tries again each second; gcl tables cannot be "
                  "used before.",
                  node_pool()->coherence_pool().durable_path()));
  pg_unreachable();
}

bool has_joined() {
  coherence::Problem problem;
  const auto joined =
      pg_entry([&] { return recovery::has_joined(node_pool()->coherence_pool(), node_pool()->node(), &problem); });
  if (!joined) fail_to_note(joined.error(), problem);
  return *joined;
}

void note_join(XLogRecPtr from) {
  bufmgr::BufferPool& pool = *node_pool();
  const recovery::Join join{.node = pool.node(),
                            .incarnation = pool.coherence_node().incarnation(),
                            .first_sequence = pool.first_sequence(),
                            .log_position = from};
  coherence::Problem problem;
  for (;;) {
    const auto noted =
        pg_entry([&] { return recovery::note_join(pool.coherence_pool(), join, recovery::Patience::kTry, &problem); });
    if (noted) return;
    if (noted.error() != Errc::kBusy) fail_to_note(noted.error(), problem);
    pause_in_wait(kJournalPauseUs);
  }
}

}  // namespace

void release_wal_before(uint64_t to) {
  if (!acquire()) return;
  if (position() != InvalidXLogRecPtr && position() < to && to <= GetFlushRecPtr(nullptr)) advance(to);
  ReplicationSlotRelease();
}

uint64_t kept_wal_bytes() {
  LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
  const ReplicationSlot* const slot = SearchNamedReplicationSlot(kSlot, false);
  const XLogRecPtr from = slot == nullptr ? InvalidXLogRecPtr : slot->data.restart_lsn;
  LWLockRelease(ReplicationSlotControlLock);
  const XLogRecPtr end = GetFlushRecPtr(nullptr);
  return from == InvalidXLogRecPtr || end < from ? 0 : end - from;
}

void keep_wal() {
  if (node_pool()->coherence_pool().durable_path() == nullptr) return;
  const XLogRecPtr before_us = GetRedoRecPtr();
  PG_TRY();
  { note_join(keep_from(before_us, has_joined())); }
  PG_CATCH();
  {
    node_state()->join_fails.store(true, std::memory_order_relaxed);
    PG_RE_THROW();
  }
  PG_END_TRY();
  node_state()->join_fails.store(false, std::memory_order_relaxed);
}

}  // namespace gcl
