// A checkpoint of a pool in use (recovery/checkpoint.hpp): what the primaries' logs have, on top of the copy of the
// last save, so that a restart has less to do and the primaries need less of their logs.
//
// gclctl.checkpoint-syncs-logs: The logs that it has read are on the disk before it is, whatever their servers have
//     flushed: what it says that a transaction has committed, its own server says, too.
// gclctl.one-checkpoint-at-a-time: Under <durable path>.checkpoint.lock, as everything else that needs the copy, the
//     checkpoint and the logs to stay as they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coherence/pool/pool_lock.hpp"
#include "tools/gclctl/removed_logs.hpp"

namespace gclctl {

// gclctl.one-checkpoint-at-a-time.  Held, unless it was not to wait.
class CheckpointLock {
 public:
  using Patience = coherence::PoolLock::Patience;
  CheckpointLock(const fs::path& saved, Patience patience);
  bool held() const { return lock_.held(); }

 private:
  const coherence::PoolLock lock_;
};

struct Checkpointed {
  bool done;         // false: there was nothing to do
  std::string text;  // what was done, or why nothing was
};
// REQUIRES: CheckpointLock.  Fails with the reason; the checkpoint before counts then.
Checkpointed make_checkpoint(const fs::path& pool, const fs::path& saved,
                             const std::map<int, std::vector<LogPlace>>& places);

// The same for a verb, which says what was done.  Returns the exit code.
constexpr int kNoCheckpointMade = 2;  // nothing was to do, or another process makes one; as servers know it
int make_checkpoint_now(const fs::path& pool, const fs::path& saved,
                        const std::map<int, std::vector<LogPlace>>& places);

// How old the last checkpoint is, and how large what lies beside the copy; empty: there is nothing.
std::string checkpoint_in_words(const fs::path& saved);

}  // namespace gclctl
