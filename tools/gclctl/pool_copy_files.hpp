// The files that a pool's durable copy is made of: what a backup takes along.
#pragma once

#include <filesystem>
#include <vector>

namespace gclctl {

namespace fs = std::filesystem;

// Those of the copy `saved` that there are: of all its memory nodes, and the checkpoint on top of it.  Without its
// journal, which goes on.  Fails if it cannot be read.
std::vector<fs::path> files_of_copy(const fs::path& saved);

}  // namespace gclctl
