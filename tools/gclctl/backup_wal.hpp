// The WAL of a primary in a backup: from where the pool's copy needs it, up to the cut.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/connection.hpp"
#include "tools/gclctl/copied_file.hpp"
#include "tools/gclctl/wal_segment.hpp"

namespace gclctl {

// How primary K's WAL is cut into files.
WalSegments segments_of(int k, Connection&);

// What the replication slot `gcl` keeps of primary K's (runtime.wal-kept-since-save): all that is needed, also by the
// base backup, which is younger.
class KeptWal {
 public:
  // Fails if the slot keeps nothing.
  KeptWal(const Cluster&, int k, Connection&);
  int primary() const { return k_; }
  // A checkpoint in the backup needs it from there on: its server may let go of what is before, at any moment.
  void needs_only_from(uint64_t position) { from_ = std::max(from_, position); }
  // Copies it to `backup`/node<K>/data/pg_wal.  From the cut on there are zeros: no record follows.  REQUIRES: flushed
  // up to there.
  void copy(uint64_t cut, const fs::path& backup, std::map<std::string, FileSum>* files) const;

 private:
  const fs::path wal_;
  const int k_;
  WalSegments segments_;
  uint64_t from_ = 0;
};

}  // namespace gclctl
