#include "tools/gclctl/wal_segment.hpp"

#include <fmt/format.h>

namespace gclctl {

std::string WalSegments::name(uint64_t position) const {
  const uint64_t per_id = (uint64_t{1} << 32) / bytes, number = position / bytes;
  return fmt::format("{:08X}{:08X}{:08X}", timeline, number / per_id, number % per_id);
}

bool is_segment_name(const std::string& name) {
  return name.size() == 24 && name.find_first_not_of("0123456789ABCDEF") == std::string::npos;
}

}  // namespace gclctl
