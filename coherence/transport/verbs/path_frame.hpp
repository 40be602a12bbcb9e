// What the two sides of a queue pair tell each other, as bytes, on a link that has shown who they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence::verbs {

inline constexpr uint32_t kPathFormat = 1;

// One side's end.  Words are little-endian; what is zero today is zero.
struct PathEnd {
  uint32_t format = kPathFormat;
  uint32_t number = 0;  // of the queue pair: 24 bits
  uint32_t first = 0;   // packet sequence number of the first packet that this side sends: 24 bits
  uint32_t key = 0;     // of a memory node: of its region, whose bytes are named from 0 on
  uint16_t lid = 0;     // over InfiniBand
  uint8_t mtu = 0;      // enum ibv_mtu: of the port
  uint8_t reads = 0;    // READs and atomics under way at once: that a node sends, that a memory node takes; not 0
  uint8_t infiniband = 0;
  uint8_t zero[3] = {};
  uint8_t gid[16] = {};
};
static_assert(sizeof(PathEnd) == 40);

inline std::span<const std::byte> bytes_of(const PathEnd& end) noexcept {
  return {reinterpret_cast<const std::byte*>(&end), sizeof end};
}
// kCorrupt: no version of this code sends it; kIncompatible: another version does.
Status decode_path_end(std::span<const std::byte> payload, PathEnd*, Problem*) noexcept;

}  // namespace coherence::verbs
