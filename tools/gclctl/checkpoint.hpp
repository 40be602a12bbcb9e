// A checkpoint of a pool in use (recovery/checkpoint.hpp): what the primaries' logs have, on top of the copy of the
// last save, so that a restart has less to do and the primaries need less of their logs.
//
// gclctl.checkpoint-syncs-logs: The logs that it has read are on the disk before it is, whatever their servers have
//     flushed: what it says that a transaction has committed, its own server says, too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/gclctl/removed_logs.hpp"

namespace gclctl {

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
