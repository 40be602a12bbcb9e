// Transaction: a session's running transaction and its writing savepoints, and TxnSystem, the cluster's transaction
// machinery (status log, clock, horizons) as one process sees it.
//
// Order of a commit (C1..C4; the client hears last):
//   prepare()   redo of everything is in ring and WAL; status of top id -> PREPARED            (host: PRE_COMMIT)
//   [host writes and flushes its own commit record]
//   commit()    COMMITTING + FAA on the clock in one batch, then CAS -> COMMITTED(cts)        (host: COMMIT)
//   abort()     one status write; nothing is undone on pages                                   (host: ABORT; never fails)
#pragma once

#include <cstdint>

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/txn/snapshot.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

using bufmgr::BufferPool;
using bufmgr::Session;
using coherence::Result;
using coherence::Status;

enum class TxnState : uint8_t { kUnused, kActive, kSub, kPrepared, kCommitting, kCommitted, kAborted };

struct TxnStatus {
  TxnState state;
  uint64_t payload;  // kActive: session id of the owner; kSub: parent's raw id; kCommitted: cts
};

class TxnSystem;

class Transaction {
 public:
  // The id that writes of the current nesting level carry; assigned at the first write of that level.
  Result<TxnId> id_for_write(Session&);
  TxnId top() const;                 // invalid: nothing written yet
  bool wrote() const;
  // Whether `id` is this transaction's: the top or a live (not rolled back) savepoint of it.
  bool is_mine(TxnId id) const;
  // Savepoints, by the host's nesting level (1 = top).
  void sub_begin(int level);
  void sub_commit(int level);        // its ids become the parent's: status SUB(parent) stays
  void sub_abort(Session&, int level);  // one status write per id; never fails
};

// What waits need to know of an id: resolved to its top-level transaction.
struct Owner {
  TxnId top;
  TxnState state;      // of the top
  uint16_t session;    // of the owner on its node, while kActive
};

class TxnSystem {
 public:
  // --- life of a transaction (see above) ---
  Transaction& current(Session&);
  Status prepare(Session&);
  Result<Cts> commit(Session&);
  void abort(Session&) noexcept;

  // --- reading the clock ---
  // A timestamp that sees everything that was committed, anywhere, before the call; registers it as the session's
  // oldest until release_snapshot().  One round trip.
  Result<Cts> take_snapshot(Session&);
  // The oldest timestamp this session still needs (~0: none).
  void set_oldest(Session&, Cts oldest) noexcept;

  // --- status ---
  Result<TxnStatus> status(Session&, TxnId);       // final ones cached in the session
  Result<Owner> owner(Session&, TxnId);            // follows SUB to the top
  // Nobody sees, or will see, a version that was deleted by a transaction with cts below this.
  Cts horizon(Session&);                            // cached; refreshed by the node's member worker and on demand
  Cts refresh_horizon(Session&);
};

}  // namespace engine
