// The rings of dead primaries, which restore points keep in place of the cluster's journal (gclctl.point-has-rings).
#pragma once

#include <filesystem>

#include "tools/gclctl/backup_manifest.hpp"

namespace gclctl {

// The cluster's journal drops rings that both the last checkpoint and the point have.  REQUIRES: CheckpointLock.
void drop_rings_of_point(const fs::path& saved, const fs::path& point, const BackupManifest& of_point);

// The journal of a restored copy, which is that of its point, gets back what it lacks, and the backup's checkpoint,
// too: `points` is the directory of all.  Fails if none has it.
void put_back_rings(const fs::path& saved, const BackupManifest& of_point, const fs::path& points);

}  // namespace gclctl
