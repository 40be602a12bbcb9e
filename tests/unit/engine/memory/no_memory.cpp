#include "tests/unit/engine/memory/no_memory.hpp"

#include <cstddef>
#include <new>

namespace {

thread_local int failing = 0;

}  // namespace

// The program's own takes the place of the library's.
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return failing > 0 ? nullptr : ::operator new[](bytes);
}

namespace engine_test {

NoMemory::NoMemory() { ++failing; }
NoMemory::~NoMemory() { --failing; }

}  // namespace engine_test
