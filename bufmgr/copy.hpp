// Copies between a page and private memory while others may write the page (rule G4) or read it optimistically.
//
// What was loaded counts only after the caller has validated; but no version number tells of a hint (one word, stored
// under a shared guard), so that every aligned word of a page is loaded whole.  memcpy of a length that is no multiple
// of 8 would not do: it loads the end a second time, at an address between two words.
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

// From a page into private memory.  Words are whole if `offset` is a multiple of 8.
void copy_from_page(void* to, const std::byte* page, uint32_t offset, uint32_t bytes) noexcept;
// The whole page; `to` is 8-byte aligned.
void copy_whole_page(void* to, const std::byte* page) noexcept;
// One aligned word of a page, in either direction.
uint64_t load_page_word(const std::byte* at) noexcept;
void store_page_word(std::byte* at, uint64_t word) noexcept;

#if !defined(__SANITIZE_THREAD__)

namespace copy_detail {
using Word = uint64_t __attribute__((may_alias));

// The compiler loads here, once, whatever it thinks of the race: `from` comes out of one empty asm, and another
// follows.
[[gnu::always_inline]] inline void copy_bytes(void* to, const std::byte* from, size_t bytes) noexcept {
  asm volatile("" : "+r"(from));
  std::memcpy(to, from, bytes);
  asm volatile("" : : : "memory");
}
}  // namespace copy_detail

inline uint64_t load_page_word(const std::byte* at) noexcept {
  return __atomic_load_n(reinterpret_cast<const copy_detail::Word*>(at), __ATOMIC_RELAXED);
}

inline void store_page_word(std::byte* at, uint64_t word) noexcept {
  __atomic_store_n(reinterpret_cast<copy_detail::Word*>(at), word, __ATOMIC_RELAXED);
}

inline void copy_from_page(void* to, const std::byte* page, uint32_t offset, uint32_t bytes) noexcept {
  VERIFY(offset <= kPageSize && bytes <= kPageSize - offset);
  auto* out = static_cast<std::byte*>(to);
  const std::byte* from = page + offset;
  if (offset % 8 == 0)
    for (; bytes >= 8; bytes -= 8, out += 8, from += 8) {
      const uint64_t word = load_page_word(from);
      std::memcpy(out, &word, 8);
    }
  copy_detail::copy_bytes(out, from, bytes);
}

// memcpy's loads begin at multiples of 8 here: each word lies within every load that touches it.
inline void copy_whole_page(void* to, const std::byte* page) noexcept { copy_detail::copy_bytes(to, page, kPageSize); }

#endif

}  // namespace bufmgr
