// Copies between a page and private memory while others may write the page (rule G4) or read it optimistically.
//
// What was loaded counts only after the caller has validated.  Copies are memcpy, inline, so that a word is one load:
// memcpy's accesses to aligned words are as atomic as the processor's.  `from` passes through an empty asm, and another
// one follows, so that the compiler loads it here, once, whatever it thinks of the race.
//
// ThreadSanitizer gets relaxed atomics in functions that are hidden from it: the other side of the race may be a peer's
// copy into a landing frame, which is plain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bufmgr/page.hpp"
#include "coherence/base/verify.hpp"

namespace bufmgr {

// From a page into private memory.
void copy_from_page(void* to, const std::byte* page, uint32_t offset, uint32_t bytes) noexcept;
// The whole page; `to` is 8-byte aligned.
void copy_whole_page(void* to, const std::byte* page) noexcept;
// One aligned word of a page, in either direction.
uint64_t load_page_word(const std::byte* at) noexcept;
void store_page_word(std::byte* at, uint64_t word) noexcept;

#if !defined(__SANITIZE_THREAD__)

namespace copy_detail {
using Word = uint64_t __attribute__((may_alias));

[[gnu::always_inline]] inline void copy_once(void* to, const std::byte* from, size_t bytes) noexcept {
  asm volatile("" : "+r"(from));
  std::memcpy(to, from, bytes);
  asm volatile("" : : : "memory");
}
}  // namespace copy_detail

inline void copy_from_page(void* to, const std::byte* page, uint32_t offset, uint32_t bytes) noexcept {
  VERIFY(offset <= kPageSize && bytes <= kPageSize - offset);
  copy_detail::copy_once(to, page + offset, bytes);
}

inline void copy_whole_page(void* to, const std::byte* page) noexcept { copy_detail::copy_once(to, page, kPageSize); }

inline uint64_t load_page_word(const std::byte* at) noexcept {
  return __atomic_load_n(reinterpret_cast<const copy_detail::Word*>(at), __ATOMIC_RELAXED);
}

inline void store_page_word(std::byte* at, uint64_t word) noexcept {
  __atomic_store_n(reinterpret_cast<copy_detail::Word*>(at), word, __ATOMIC_RELAXED);
}

#endif

}  // namespace bufmgr
