// The logs of primaries that are in the cluster no more, or not with the same data directory: a pool that memory loses
// before it is saved again is made of them, too.
//
//   DIR/node<K>/data/pg_wal            primary K's
//   DIR/removed<K>.<I>/pg_wal          of primary K that was removed, up to incarnation I; and its global/pg_control
//
// gclctl.removed-log-kept: Of a primary that is removed the log stays, whatever becomes of its data directory,
//     until the pool has been saved: a backup has it, too, and a directory that comes in its place has another log.
// gclctl.removed-log-whole: What has the name of a kept log is whole, and on the disk.  A command that was killed, or
//     found the disk full, has left the log where it was, or beside; the next one goes on from there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "recovery/restart_journal.hpp"
#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// What the journal has of the pool since its copy was saved; fails if it cannot be read.
recovery::History history_of(const fs::path& saved);

// A directory with a pg_wal, and the incarnations of its node that are in there.
struct LogPlace {
  static constexpr uint64_t kNewest = ~uint64_t{0};  // upto: the primary's that it has now
  fs::path data;
  uint64_t after = 0, upto = 0;
};
// Where the node's logs are, in order.
std::vector<LogPlace> logs_of(const Cluster& cluster, int k);

// The directories of those that are kept of removed primaries.
std::vector<fs::path> kept_log_directories(const Cluster& cluster);

// Puts the log of a primary that is removed aside, if it is needed; whether it was.  It is copied where the data
// directory stays as it is.
enum class KeptLog { kMoved, kCopied };
bool keep_log(const Cluster& cluster, int k, KeptLog how);
// Before a primary gets a data directory in place of one whose log is not here: makes the directory for that log,
// empty. A restart that needs the log fails then, and names this directory.  Nullopt: no log is missing.
std::optional<fs::path> note_missing_log(const Cluster& cluster, int k);
// Removes those that are not needed any more.  REQUIRES: the pool is saved.
void drop_logs(const Cluster& cluster);

}  // namespace gclctl
