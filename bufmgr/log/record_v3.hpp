// Redo records of format 3, the one before today's (log.reader-of-before).  They are read, and no longer written: gcl
// 1.1 wrote them, in its first builds, to rings and to logs.
//
//   As in record.hpp, but that
//   - a log's record has the whole header, as a ring's
//   - each offset, also that of a copy's source, has 2 bytes
//   - of what is packed, a count above 127 is no repetition: but at most 256 bytes were packed, and none has one
//
// An author who deletes this file deletes what names `record_v3`, and tests/unit/recovery/golden/redo_v3.*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bufmgr::record_v3 {

inline constexpr uint32_t kFormat = 3;

// Reads one from [at, end); nullptr: there is none.
inline const std::byte* get_offset(const std::byte* at, const std::byte* end, uint64_t* offset) noexcept {
  uint16_t number;
  if (end - at < ptrdiff_t(sizeof number)) return nullptr;
  std::memcpy(&number, at, sizeof number);
  *offset = number;
  return at + sizeof number;
}

}  // namespace bufmgr::record_v3
