// PrimariesLock: while it lives no other gclctl adds a primary, removes one, or gives one other software
// (gclctl.primaries-change-alone).  What cluster.conf said before may be over.
#pragma once

#include <cerrno>
#include <cstring>

#include "coherence/region/pool_lock.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {

class PrimariesLock {
 public:
  // Fails if another one does.
  explicit PrimariesLock(const fs::path& dir) : lock_((dir / "primaries").c_str(), coherence::PoolLock::kTry) {
    if (lock_.held()) return;
    if (errno == EWOULDBLOCK)
      fail("another gclctl adds a primary to {}, removes one, or upgrades: wait until it has ended", dir.string());
    fail("cannot lock {}: {}", (dir / "primaries.lock").string(), strerror(errno));
  }

 private:
  const coherence::PoolLock lock_;
};

}  // namespace gclctl
