// Copies between a page and private memory while others may write the page (guards.torn-until-validated) or read it
// optimistically.
//
// What was loaded counts only after the caller has validated.  No version tells of a hint (one word, stored under a
// shared guard), so every aligned word of a page is loaded whole.  memcpy of a length that is no multiple of 8 would
// not do: it loads the end a second time, at an address between two words.
//
// ThreadSanitizer gets relaxed atomics in functions that are hidden from it: a peer's copy into a landing frame, the
// other side of the race, is plain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bufmgr/base/page.hpp"
#include "coherence/base/verify.hpp"

namespace bufmgr {

// From a page into private memory.  Words are whole if `offset` is a multiple of 8.
void copy_from_page(void* to, const std::byte* page, uint32_t offset, uint32_t bytes) noexcept;
// The whole page; `to` is 8-byte aligned.
void copy_whole_page(void* to, const std::byte* page) noexcept;
// The parts of a page that hold something by its header (`lower`, `upper`), at their places in `to`; what lies between
// them is left as it was.  Of a page that was never formatted: the header.  REQUIRES: `to` is 8-byte aligned and has
// room for a page.
void copy_page_parts(std::byte* to, const std::byte* page) noexcept;
// One aligned word of a page, in either direction.
uint64_t load_page_word(const std::byte* at) noexcept;
void store_page_word(std::byte* at, uint64_t word) noexcept;

#if defined(__SANITIZE_THREAD__)

namespace copy_detail {
void copy_words(void* to, const std::byte* from, uint32_t words) noexcept;
}

#else

namespace copy_detail {
using Word = uint64_t __attribute__((may_alias));

// The compiler loads here, once, whatever it thinks of the race: `from` comes out of one empty asm, and another
// follows.
[[gnu::always_inline]] inline void copy_bytes(void* to, const std::byte* from, size_t bytes) noexcept {
  asm volatile("" : "+r"(from));
  std::memcpy(to, from, bytes);
  asm volatile("" : : : "memory");
}
// memcpy's loads begin at multiples of 8 here: each word lies within every load that touches it.
inline void copy_words(void* to, const std::byte* from, uint32_t words) noexcept { copy_bytes(to, from, words * 8); }
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
  if (offset % 8 == 0) {
    const uint32_t words = bytes / 8;
    if (__builtin_constant_p(words) && words <= 8)
      for (uint32_t i = 0; i < words; ++i) {
        const uint64_t word = load_page_word(from + i * 8);
        std::memcpy(out + i * 8, &word, 8);
      }
    else
      copy_detail::copy_words(out, from, words);
    out += words * 8, from += words * 8, bytes %= 8;
  }
  copy_detail::copy_bytes(out, from, bytes);
}

inline void copy_whole_page(void* to, const std::byte* page) noexcept { copy_detail::copy_bytes(to, page, kPageSize); }

#endif

inline void copy_page_parts(std::byte* to, const std::byte* page) noexcept {
  static_assert(kPageBody % 8 == 0);
  copy_detail::copy_words(to, page, kPageBody / 8);
  PageHeader header;
  std::memcpy(&header, to, sizeof header);
  if (header.type == PageType::kUnused) return;
  // Whatever a torn header says stays within the page.
  const uint32_t lower = (header.lower + 7u) & ~7u, upper = header.upper & ~7u;
  if (lower < kPageBody || lower > upper || upper > kPageSize) return copy_whole_page(to, page);
  copy_detail::copy_words(to + kPageBody, page + kPageBody, (lower - kPageBody) / 8);
  copy_detail::copy_words(to + upper, page + upper, (kPageSize - upper) / 8);
}

}  // namespace bufmgr
