// A pool that memory has lost while it was in use: the machine lost power, or somebody emptied the tmpfs.
//
// gclctl.restart-from-logs: It is made again out of its copy of the last save and the logs of all primaries that have
//     worked since, before any server starts.  What a client was told is there then, or the command fails and says what
//     is missing; it never starts with less.
// gclctl.fenced-made-again: A fenced pool is one that memory has lost: no primary uses what is there any more, and what
//     a client was told is in the logs.  Its file is there, by another name, until another pool has its place.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/gclctl/removed_logs.hpp"

namespace gclctl {

struct LostPool {
  fs::path file, saved;
  std::string compatibility;                  // of the servers; empty: not known
  std::map<int, std::vector<LogPlace>> logs;  // of each primary there may be
};

// REQUIRES: no primary runs, and no memory node.  Whether there was anything to do: not if the pool is in memory and
// not fenced, or its copy is of a clean stop.  Fails with what is missing; the copy, the logs, and what is in memory,
// are as they were then.
bool restart_pool(const LostPool& lost);

// A command that was killed when it had made a fenced pool again has left what that had in memory.  REQUIRES: no
// primary runs.
void remove_given_up(const fs::path& pool);

}  // namespace gclctl
