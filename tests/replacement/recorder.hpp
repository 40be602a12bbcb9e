// The pages that a thread accesses, in order.
#pragma once

#include <cstdint>
#include <vector>

namespace gcl_test {

// Page numbers, as the pool names them or as the trace does.
using Trace = std::vector<uint64_t>;

// While it lives, it records its thread's page accesses.  One at a time.
class Recording {
 public:
  explicit Recording(Trace& to);
  ~Recording();
  Recording(const Recording&) = delete;
};

}  // namespace gcl_test
