// Wait events: what a process that waits for gcl shows in pg_stat_activity.  PostgreSQL 15 gives an extension one name,
// "Extension"; names of its own it knows for lightweight locks only, so ours are that: wait_event_type is LWLock,
// wait_event says what is waited for.  No such lock exists; each name is a registered tranche.
//
//   (void)WaitLatch(MyLatch, ..., wait_event(WaitEvent::kDdlAnswers));
#pragma once

#include <cstdint>

namespace gcl {

enum class WaitEvent : uint8_t {
  kPageLatch,   // GclPageLatch: a page that another process of this server has latched, or fetches
  kPeer,        // GclPeer: another primary's answer to a request for a page
  kFrame,       // GclFrame: a free frame in gcl.cache_size
  kRedoRing,    // GclRedoRing: room in this primary's redo ring, or (a commit) the sessions that write there
  kRowOwner,    // GclRowOwner: the tag of another primary's transaction, before it is waited for as an advisory lock
  kOldOnes,     // GclOldTransactions: those that VACUUM, or the status log, cannot pass
  kDdlLock,     // GclDdlLock: a DDL lock, held on another primary
  kDdlSlot,     // GclDdlSlot: room for one more transaction that does DDL or LOCK TABLE
  kDdlAnswers,  // GclDdlAnswers: the other primaries, that run this session's DDL or LOCK TABLE
  kViews,       // GclViews: other primaries' answers to gcl_stat_waits
  kCommit,      // GclCommit: a transaction that is committed in this server, and about to be in gcl tables
  kCheckpoint,  // GclCheckpoint: the command that makes a checkpoint of the pool
  kHeldCommit,  // GclHeldCommit: its own commit is held, while a backup takes its cut
  kCount
};

// In the postmaster, once shared memory is there; inherited by all processes.
void register_wait_events();
// For WaitLatch() and its like; the "Extension" of all others while nothing is registered.
uint32_t wait_event(WaitEvent event) noexcept;

}  // namespace gcl
