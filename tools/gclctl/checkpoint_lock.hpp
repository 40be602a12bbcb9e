// Who holds it has the files of the pool's durable copy as they are, and the WAL that belongs to them: nobody brings
// the copy forward while a primary is in the pool (saves when the last one leaves are not kept away by it).
#pragma once

#include <cerrno>
#include <cstring>

#include "coherence/pool/pool_lock.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {

class CheckpointLock {
 public:
  // <durable copy>.checkpoint.lock.  Fails if another process has it.
  explicit CheckpointLock(const fs::path& saved)
      : lock_((saved.string() + ".checkpoint").c_str(), coherence::PoolLock::kTry) {
    if (lock_.held()) return;
    if (errno == EWOULDBLOCK) fail("{} is in use by another backup, or by a checkpoint of the pool", saved.string());
    fail("cannot lock {}.checkpoint.lock: {}", saved.string(), strerror(errno));
  }

 private:
  coherence::PoolLock lock_;
};

}  // namespace gclctl
