// What stands for others in this server's lock manager: for a remote transaction, or speculation, an advisory lock of a
// class of its own; for a speculation of this server, the lock that PostgreSQL's executor takes.
#pragma once

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

struct SpeculationLock {
  TransactionId xid;
  uint32 token;
};
// As the engine carries it; never 0.
inline uint64_t speculation_lock(SpeculationLock lock) { return uint64_t{lock.xid} << 32 | lock.token; }
inline SpeculationLock speculation_lock(uint64_t lock) { return {TransactionId(lock >> 32), uint32(lock)}; }

}  // namespace gcl
