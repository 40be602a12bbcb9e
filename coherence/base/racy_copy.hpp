// Copies of bytes that another process may be changing meanwhile, or that somebody may be reading optimistically.  The
// copy may be torn; a version decides afterwards whether it counts.  In effect relaxed word accesses: spelled out for
// ThreadSanitizer, left to memcpy elsewhere (whose word accesses are as atomic as the CPU's).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace coherence {

inline void racy_copy(void* to, const void* from, size_t bytes) noexcept {
#ifdef __SANITIZE_THREAD__
  auto* t = static_cast<uint8_t*>(to);
  auto* f = static_cast<uint8_t*>(const_cast<void*>(from));
  if ((uintptr_t(t) | uintptr_t(f) | bytes) % 8 == 0) {
    for (; bytes; bytes -= 8, t += 8, f += 8)
      std::atomic_ref(*reinterpret_cast<uint64_t*>(t))
          .store(std::atomic_ref(*reinterpret_cast<uint64_t*>(f)).load(std::memory_order_relaxed),
                 std::memory_order_relaxed);
    return;
  }
  for (; bytes; bytes--, t++, f++)
    std::atomic_ref(*t).store(std::atomic_ref(*f).load(std::memory_order_relaxed), std::memory_order_relaxed);
#else
  memcpy(to, from, bytes);
#endif
}

}  // namespace coherence
