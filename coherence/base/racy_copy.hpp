// Copies of bytes that another process may be changing meanwhile, or reading optimistically.  The copy may be torn; a
// version decides afterwards whether it counts.  In effect relaxed word accesses: spelled out for ThreadSanitizer, left
// to memcpy elsewhere (whose word accesses are as atomic as the CPU's).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace coherence {

#ifdef __SANITIZE_THREAD__
template <class T>
void copy_pieces(std::byte* to, std::byte* from, size_t bytes, std::memory_order load, std::memory_order store) {
  for (size_t i = 0; i < bytes; i += sizeof(T))
    std::atomic_ref(*reinterpret_cast<T*>(to + i))
        .store(std::atomic_ref(*reinterpret_cast<T*>(from + i)).load(load), store);
}
inline void copy_atomically(void* to, const void* from, size_t bytes, std::memory_order load,
                            std::memory_order store) noexcept {
  auto* t = static_cast<std::byte*>(to);
  auto* f = static_cast<std::byte*>(const_cast<void*>(from));
  const bool words = (uintptr_t(t) | uintptr_t(f) | bytes) % 8 == 0;
  words ? copy_pieces<uint64_t>(t, f, bytes, load, store) : copy_pieces<uint8_t>(t, f, bytes, load, store);
}
#endif

inline void racy_copy(void* to, const void* from, size_t bytes) noexcept {
#ifdef __SANITIZE_THREAD__
  copy_atomically(to, from, bytes, std::memory_order_relaxed, std::memory_order_relaxed);
#else
  memcpy(to, from, bytes);
#endif
}

// Into memory that others look at: a process that sees anything of it sees what this thread did before.
// (ThreadSanitizer knows no fences; there each word does what the fence does for all.)
inline void racy_publish(void* to, const void* from, size_t bytes) noexcept {
#ifdef __SANITIZE_THREAD__
  copy_atomically(to, from, bytes, std::memory_order_relaxed, std::memory_order_release);
#else
  std::atomic_thread_fence(std::memory_order_release);  // pairs with the fence of racy_look(), and acquiring loads
  memcpy(to, from, bytes);
#endif
}

// From memory that others write: what this thread does next comes after what it has seen of it.
inline void racy_look(void* to, const void* from, size_t bytes) noexcept {
#ifdef __SANITIZE_THREAD__
  copy_atomically(to, from, bytes, std::memory_order_acquire, std::memory_order_relaxed);
#else
  memcpy(to, from, bytes);
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the fence of racy_publish(), and releasing stores
#endif
}

}  // namespace coherence
