// The files of a WAL: how they are called, and which has a position.
#pragma once

#include <cstdint>
#include <string>

namespace gclctl {

struct WalSegments {
  uint32_t timeline = 0;
  uint64_t bytes = 0;  // of each

  uint64_t begin_of(uint64_t position) const { return position / bytes * bytes; }
  // Of the one that has the byte at that position.
  std::string name(uint64_t position) const;
};

// Names of 24 digits, as PostgreSQL gives them; false for other files beside them.
bool is_segment_name(const std::string& name);

}  // namespace gclctl
