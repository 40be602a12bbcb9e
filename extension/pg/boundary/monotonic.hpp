// The clock by which the server's processes measure how long something takes.
//
// boundary.durations-by-monotonic-clock: How long a wait, a pause or a patience lasts is measured by a clock that
//     nobody sets.  The time of day is for what people read, and for comparisons with what PostgreSQL has noted by
//     it.
#pragma once

#include <cstdint>

#include "coherence/base/os.hpp"

namespace gcl {

inline int64_t monotonic_us() noexcept { return int64_t(coherence::monotonic_ns() / 1000); }

}  // namespace gcl
