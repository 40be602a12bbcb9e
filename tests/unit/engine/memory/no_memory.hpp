// NoMemory: while it lives, its thread gets no memory for what grows with a transaction (new (std::nothrow) T[n]); all
// other allocations go on as usual.
#pragma once

namespace engine_test {

class NoMemory {
 public:
  NoMemory();
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
};

}  // namespace engine_test
