// The node: what this server's processes share about the pool.  Set up in the postmaster before the first fork.
//
// runtime.pool-inherited: `node_pool()` is the object every process inherits; null: this server has no pool (not
//     configured, or refused because it is fenced: then `fence_reason()` says why, and every access raises 57P02).
// runtime.state-made-anew: NodeState lies in PostgreSQL's shared memory and is made anew after a crash restart
//     (extension.crash-restart-joins-again).
// runtime.workers-outlive-backends: Backends count in `backends` while their session lives, those that do the other
//     primaries' DDL in `ddl_workers`, too: these leave when no other is left.  Workers outlive them all
//     (workers.helpers-end-later), the flusher the others, and the message worker is the last.  The first worker that
//     finds no backend closes the count: no session begins behind it but the message worker's.
#pragma once

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/sequence/lease_table.hpp"
#include "extension/engine/serializable/hold_table.hpp"
#include "extension/engine/txn/txn_shared.hpp"
#include "extension/engine/txn/wait_table.hpp"
#include "extension/pg/boundary/pg.hpp"
#include "extension/pg/runtime/session_count.hpp"
#include "extension/pg/runtime/table_changes.hpp"
#include "recovery/ring_repair.hpp"

extern "C" {
#include "storage/condition_variable.h"
}

namespace gcl {

enum class Worker : int {
  kMessages,
  kProvider,
  kFlusher,
  kMember,
  kStatistics,
  kReclaim,
  kRepair,
  kCheckpointer,
  kCount
};
inline constexpr int kWorkers = int(Worker::kCount);

// Of what a former incarnation left in doubt (extension.doubts-decided-first).
enum class Doubts : int { kOpen, kBeingDecided, kOver };

struct NodeState {
  SessionCount backends;              // sessions of backends
  std::atomic<uint32_t> ddl_workers;  // of them, the DDL launcher's and the apply workers'
  SessionCount workers;               // sessions of workers
  std::atomic<bool> ready;            // the member worker joined: sessions may begin
  std::atomic<bool> join_fails;       // it could not when it last tried; the log says why
  std::atomic<Doubts> doubts;
  std::atomic<uint64_t> flush_wanted;      // highest position that a process waits for
  std::atomic<int> worker_proc[kWorkers];  // pgprocno, -1: not running
  std::atomic<bool> reclaim_wanted;        // a transaction that made or dropped relations has ended
  std::atomic<uint64_t> reclaim_open;      // relations made or dropped and not dealt with, as the worker last saw
  engine::WaitTable waits;
  engine::LeaseTable leases;  // of sequences
  TableChanges changes;
  ConditionVariable answers;  // of other primaries, to sessions that ask what they wait for
};

// From _PG_init: shared memory hooks.
void install_node();

bufmgr::BufferPool* node_pool();
recovery::RingRepair* node_redo();  // of dead nodes; as node_pool()
NodeState* node_state();
engine::TxnShared* node_txn_shared();
engine::HoldTable* node_holds();
bool node_configured();
const char* fence_reason();

// Wakes a worker of this node; nothing happens if it does not run.
void wake_worker(Worker worker) noexcept;

}  // namespace gcl
