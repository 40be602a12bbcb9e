// Index entries as the engine sees them: opaque key bytes and the row they point to, ordered by one comparator seam.
#pragma once

#include <cstdint>
#include <span>

#include "extension/engine/heap/row.hpp"

namespace engine::blink {

// An entry in private, 8-byte aligned memory.  `key` is PostgreSQL's IndexTuple image (its t_tid is not trusted).
struct Entry {
  std::span<const std::byte> key;
  Tid tid;
};

// The comparator seam.  Keys given to it always lie in private memory (never in a page): it may run user code, and it
// may leave by the host's error mechanism, because no guard is held and nothing that owns something is on the stack
// (I-B1).
class Comparator {
 public:
  virtual ~Comparator() = default;
  // Orders the search key (opaque to the engine, owned by the caller) against an entry's key: <0, 0, >0 as search key
  // sorts before, with, after it.  Attributes the search key does not give compare equal.
  virtual int compare(const void* search, std::span<const std::byte> key) = 0;
};

}  // namespace engine::blink
