// What a memory node has done so far, as bytes: a tool asks, any memory node answers.
//
// Words are little-endian, and both frames have one length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence::tcp {

// Types of frames on a link.  The first one is empty.
inline constexpr uint16_t kAskFiguresFrame = 5, kFiguresFrame = 6;

// Of this start of its daemon.
struct FiguresRecord {
  uint64_t up_us;
  uint64_t links;                // now
  uint64_t batches, operations;  // carried out by the daemon
  uint64_t bytes_in, bytes_out;  // of requests and results
  uint64_t refused;              // links ended for what they sent
  uint64_t user_us, system_us;   // processor time of the daemon, all of it
};
static_assert(std::has_unique_object_representations_v<FiguresRecord>);

// kCorrupt: it is none.
Status decode_figures(std::span<const std::byte> frame, FiguresRecord*, Problem*) noexcept;

}  // namespace coherence::tcp
