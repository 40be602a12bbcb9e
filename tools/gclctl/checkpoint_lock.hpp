// A process that holds it has the files of the pool's durable copy as they are, with the checkpoint on top of it, and
// the WAL that belongs to them: nobody brings the copy forward while a primary is in the pool (saves when the last one
// leaves are not kept away by it).
//
// gclctl.one-checkpoint-at-a-time: So checkpoints, backups and restarts hold <durable copy>.checkpoint.lock.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "coherence/region/pool_lock.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {

class CheckpointLock {
 public:
  // Waits until nobody else has it; but no longer than that.
  CheckpointLock(const fs::path& saved, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      lock_ =
          std::make_unique<coherence::PoolLock>((saved.string() + ".checkpoint").c_str(), coherence::PoolLock::kTry);
      if (lock_->held()) return;
      if (errno != EWOULDBLOCK) fail("cannot lock {}.checkpoint.lock: {}", saved.string(), strerror(errno));
      if (std::chrono::steady_clock::now() >= deadline) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  bool held() const { return lock_->held(); }

 private:
  std::unique_ptr<coherence::PoolLock> lock_;
};

// For a command that needs it: fails when another process has it for longer than a checkpoint takes.
struct RequiredCheckpointLock : CheckpointLock {
  explicit RequiredCheckpointLock(const fs::path& saved) : CheckpointLock(saved, std::chrono::seconds(15)) {
    if (!held()) fail("{} is in use by another backup, or by a checkpoint of the pool", saved.string());
  }
};

}  // namespace gclctl
