// Files of a backup: copied, summed, and on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "coherence/region/memory_file.hpp"

namespace gclctl {

namespace fs = std::filesystem;

struct FileSum {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  bool operator==(const FileSum&) const = default;
};

constexpr uint64_t kWholeFile = ~uint64_t{0};

std::unique_ptr<coherence::File> open_to_read(const fs::path& path);

// Copies the first `bytes` of an open file to a new file `to`, and zeros behind them until it has `padded_to` bytes.
// What it has in it, or fails with a sentence that has its name.
FileSum copy_open_file(const coherence::File& from, const fs::path& to, uint64_t bytes = kWholeFile,
                       uint64_t padded_to = 0);
FileSum copy_summed(const fs::path& from, const fs::path& to);
FileSum sum_of(const fs::path& path);

}  // namespace gclctl
