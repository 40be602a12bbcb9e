// What stands for others in this server's lock manager: for a remote transaction, or speculation, or the holds of any
// transaction, an advisory lock of a class of its own; for a speculation of this server, the lock that PostgreSQL's
// executor takes.
#pragma once

#include "extension/engine/txn/txn_id.hpp"
#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "storage/lock.h"
}

namespace gcl {

inline LOCKTAG wait_tag(uint64_t id) {
  LOCKTAG tag;
  SET_LOCKTAG_ADVISORY(tag, InvalidOid, uint32(id >> 32), uint32(id), 3);
  return tag;
}

// The holds of a transaction, of any primary, as what is waited for: no transaction's id, and no speculation's.
inline constexpr uint64_t kHoldWait = uint64_t{1} << 62;
static_assert(engine::TxnId::kBits < 62);
inline uint64_t hold_wait(engine::TxnId id) { return kHoldWait | id.raw; }
inline bool is_hold_wait(uint64_t id) { return id >> 62 == 1; }
inline engine::TxnId hold_waited_for(uint64_t id) { return {id & ~kHoldWait}; }

struct SpeculationLock {
  TransactionId xid;
  uint32 token;
};
// As the engine carries it; never 0.
inline uint64_t speculation_lock(SpeculationLock lock) { return uint64_t{lock.xid} << 32 | lock.token; }
inline SpeculationLock speculation_lock(uint64_t lock) { return {TransactionId(lock >> 32), uint32(lock)}; }

}  // namespace gcl
