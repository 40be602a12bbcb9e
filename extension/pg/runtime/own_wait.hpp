// OwnWait: what a process tells its server's member worker of waits that PostgreSQL's lock manager cannot explain by
// itself: that it waits for another primary, for how long it would, and on whose behalf an apply worker acts.
//
// One slot per process, in shared memory, at its pgprocno; written by that process, and by the member worker when it
// condemns the wait.
//
//   own_wait_begins(OwnWaitKind::kTag); PG: wait; own_wait_ends();      // always both; FATAL: own_wait_forget()
//
// runtime.condemned-for-one-wait: A condemnation belongs to one wait, and goes with it: what comes next, the lock
//     manager's own deadlock or the wait for the others to clean up, knows nothing of it.
#pragma once

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "storage/spin.h"
}

namespace gcl {

enum class OwnWaitKind : uint8_t { kNone, kTag, kReplies, kDdlLock };

inline constexpr uint32_t kDetailBytes = 1024;

struct OwnParty {
  int pid;  // 0: none
  uint8_t node;
};

struct OwnRemote {
  uint64_t id;   // raw TxnId: a transaction, or a savepoint of one; or a Speculation's wait_id()
  uint64_t top;  // of the transaction that it belongs to
};

struct OwnWait {
  uint64_t sequence;         // of the wait; grows
  TimestampTz since;         //
  uint64_t ddl_transaction;  // the DDL transaction this process is the coordinator of, or works for; 0: none
  OwnParty works_for;        // an apply worker's coordinator
  OwnParty holder;           // kDdlLock: the session that has it
  OwnRemote remote;          // kTag: what it waits for
  int pid;
  int timeout_ms;  // its deadlock_timeout, when the wait or the DDL transaction began
  OwnWaitKind kind;
  bool condemned;
};

size_t own_waits_bytes(uint32_t slots);
void own_waits_init(void* memory, uint32_t slots);  // before the first process is forked

// --- the process itself ---------------------------------------------------------------------------------------------
void own_wait_begins(OwnWaitKind kind, OwnParty holder = {}, OwnRemote remote = {});
void own_wait_ends() noexcept;
void own_wait_goes_on() noexcept;  // the wait that ended last did not end after all
void own_ddl_transaction(uint64_t ddl_transaction, OwnParty works_for = {}) noexcept;  // 0: none any more
// The process ends, or its slot had another one.
void own_wait_forget() noexcept;
// The transaction or savepoint is rolled back: a condemnation that was not asked for goes with it.
void own_wait_rolled_back() noexcept;
// From _PG_init: puts the deadlock's detail into errors of the lock manager that pass no code of ours.
void install_deadlock_details();
// Raises 40P01 if this wait was condemned.
void own_wait_check();
// Puts the deadlock's detail into the ERROR that PostgreSQL's lock manager raised for it; false if there is none.
bool own_wait_explain(ErrorData* error) noexcept;

// --- the member worker ----------------------------------------------------------------------------------------------
uint32_t own_wait_slots() noexcept;
OwnWait own_wait_of(uint32_t slot) noexcept;
// `kind`, `sequence`: of the wait; kNone for one in the lock manager that the process has told nothing of, while it is
// the coordinator of a DDL transaction.  False: it is another wait by now.
bool own_wait_condemn(uint32_t slot, int pid, OwnWaitKind kind, uint64_t sequence, const char* detail) noexcept;

}  // namespace gcl
