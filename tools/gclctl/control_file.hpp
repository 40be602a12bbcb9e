// What the control file of a data directory says, of a server of PostgreSQL 15 that runs or not.
#pragma once

#include <cstdint>
#include <filesystem>

namespace gclctl {

// Where the record of the server's last checkpoint begins: it was on the disk before the file said so.  0: there is no
// control file.  Fails if it cannot be read, or is of another version.
uint64_t last_checkpoint_of(const std::filesystem::path& data);

}  // namespace gclctl
