// What a backup has, in a file of its own that is written last: a directory without it is no backup.
//
//   BACKUP/backup.gcl            this description
//   BACKUP/cluster.gcl           what cluster.conf said
//   BACKUP/pool.saved*           the pool's durable copy, and its journal up to the cut
//   BACKUP/node<K>/data/         a base backup of primary K, with a manifest of PostgreSQL's own; its pg_wal ends at
//                                the cut
//   BACKUP/removed<K>.<I>/       logs of primaries that were removed (gclctl.removed-log-kept)
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tools/gclctl/copied_file.hpp"

namespace gclctl {

struct BackupManifest {
  static constexpr const char* kFileName = "backup.gcl";
  static constexpr const char* kPointFile = "point.gcl";  // of a restore point: has the cut and the journal
  static constexpr const char* kClusterFile = "cluster.gcl";

  int server = 0;    // version of PostgreSQL, 150020
  std::string time;  // of the cut, as UTC
  uint64_t pool_id = 0, saves = 0;
  std::map<int, uint64_t> cut;           // the position where the log of each primary ends
  std::map<std::string, FileSum> files;  // by path in the backup; those in PostgreSQL's own manifests are not here

  // Whole or not at all, and on the disk.
  void write(const fs::path& backup, const char* name = kFileName) const;
  // Fails if there is none in a directory: it is no backup.
  static void require(const fs::path& backup);
  // Fails with a sentence if there is none, it is damaged, or has another format.
  static BackupManifest read(const fs::path& backup, const char* name = kFileName);
};

// They fail with a sentence that names what is missing or damaged: of the files in ours; also of those in PostgreSQL's
// manifests, and of the pool's copy.
void check_files(const fs::path& backup, const BackupManifest&);
void check_backup(const fs::path& backup, const BackupManifest&);

}  // namespace gclctl
