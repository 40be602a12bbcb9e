// Restore points: cuts that are noted beside archives of the primaries' WAL, so that a backup and the archives make the
// cluster as it was at one of them.
//
//   ARCHIVE/node<K>/<segment>      as the archive_command of primary K puts them
//   ARCHIVE/points/<time>/         of one cut: point.gcl, with the positions; the journal up to there; the life of each
//                                  primary's data directory
//
// gclctl.point-beside-archive: What a cut needs beside WAL is a directory in the archive, which gets its name when
//     it is whole: where the archive survives, so does the point.  In the WAL of each primary it could not tell
//     whether the others have their part, and the journal of the pool would have to be in there, too.
// gclctl.point-of-one-save: A point belongs to backups of the same save of the pool: a save ends the journal that both
//     are told by.
// gclctl.later-by-position: Of two points, and of a point and a backup, that one is later that is further in the WAL of
//     all primaries: the clock that gave them their times may have been set meanwhile. The times are for --to alone.
// gclctl.point-has-rings: From the first backup after a save on, the journal keeps the rings of those that died, also
//     where a checkpoint has them, until a point has them, too: a point may be restored on top of an older checkpoint,
//     the backup's.  Later points lack what an earlier one has, so all since the backup are needed, as WAL is.  It does
//     so where a primary archived when the backup was taken: else there are no points, and a ring for each death would
//     stay.
#pragma once

#include <optional>
#include <string>

#include "tools/gclctl/backup_manifest.hpp"

namespace gclctl {

struct RestorePoint {
  fs::path archive, dir;
  BackupManifest what;
};

// The last point, of those whose times are `upto` (UTC) or before, or of all (empty), that goes on from that backup.
// Fails if there is none, or the primaries are others.
RestorePoint find_point(const fs::path& archive, const BackupManifest& backup, const std::string& upto);

// Replaces the WAL of primary K in `data`, which ends at the backup's cut, by that up to the point, out of the archive.
void place_archived_wal(const RestorePoint&, int k, uint64_t backup_cut, const fs::path& data);

}  // namespace gclctl
