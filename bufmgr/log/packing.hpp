// Numbers and bytes in few bytes, for redo records.
//
//   varint   seven bits a byte, the lowest first; the top bit says that more follow
//   packed   for every eight bytes a tag, whose bit n says that byte n is not zero, and the bytes that are not.  Bytes
//            that the last eight lack count as zeros.  After a tag of 255 and its eight bytes comes a count n of one
//            byte: up to 127, n times eight bytes follow as they are; above, the same eight bytes come n - 127 times
//            more.  (As Cap'n Proto packs, but for runs: text that is filled up with blanks is more frequent than
//            zeros.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bufmgr {

inline constexpr uint32_t kVarintMax = 10;  // bytes

inline std::byte* put_varint(std::byte* to, uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *to++ = std::byte(value | 0x80);
  *to++ = std::byte(value);
  return to;
}

// Reads one from [at, end); nullptr: there is none.
inline const std::byte* get_varint(const std::byte* at, const std::byte* end, uint64_t* value) noexcept {
  *value = 0;
  for (uint32_t shift = 0; at != end && shift < 64; shift += 7) {
    const auto byte = uint64_t(*at++);
    *value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return at;
  }
  return nullptr;
}

// What pack() may write beyond `limit` before it gives up.
inline constexpr uint32_t kPackingSlack = 16;

// Packs `count` bytes; returns how many it wrote, or 0 if they would be `limit` or more.
uint32_t pack(std::byte* to, const std::byte* from, uint32_t count, uint32_t limit) noexcept;

// Unpacks `count` bytes from [at, end) to `to`, or only skips them if it is null.  Returns what follows them; nullptr:
// these are not packed bytes.
const std::byte* unpack(const std::byte* at, const std::byte* end, std::byte* to, uint32_t count) noexcept;

}  // namespace bufmgr
