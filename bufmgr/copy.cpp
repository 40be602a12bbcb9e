// For ThreadSanitizer only: other builds have these inline.
#include "bufmgr/copy.hpp"

#if defined(__SANITIZE_THREAD__)

#define GCL_RACY __attribute__((no_sanitize("thread"), noinline))

namespace bufmgr {
namespace {

using Word = uint64_t __attribute__((may_alias));

GCL_RACY void copy_bytes(std::byte* to, const std::byte* from, uint32_t bytes) noexcept {
  for (uint32_t i = 0; i < bytes; ++i) {
    const auto* source = reinterpret_cast<const unsigned char*>(from + i);
    *reinterpret_cast<unsigned char*>(to + i) = __atomic_load_n(source, __ATOMIC_RELAXED);
  }
}

}  // namespace

GCL_RACY void copy_detail::copy_words(void* to, const std::byte* from, uint32_t words) noexcept {
  for (uint32_t i = 0; i < words; ++i) {
    const uint64_t word = __atomic_load_n(reinterpret_cast<const Word*>(from) + i, __ATOMIC_RELAXED);
    __builtin_memcpy(static_cast<std::byte*>(to) + 8 * i, &word, 8);
  }
}

GCL_RACY void copy_from_page(void* to, const std::byte* page, uint32_t offset, uint32_t bytes) noexcept {
  VERIFY(offset <= kPageSize && bytes <= kPageSize - offset);
  auto* out = static_cast<std::byte*>(to);
  const std::byte* from = page + offset;
  if (const uint32_t lead = -offset & 7; lead != 0) {
    const uint32_t head = lead < bytes ? lead : bytes;
    copy_bytes(out, from, head);
    out += head, from += head, bytes -= head;
  }
  copy_detail::copy_words(out, from, bytes / 8);
  copy_bytes(out + bytes / 8 * 8, from + bytes / 8 * 8, bytes % 8);
}

GCL_RACY void copy_whole_page(void* to, const std::byte* page) noexcept {
  copy_detail::copy_words(to, page, kPageSize / 8);
}

GCL_RACY uint64_t load_page_word(const std::byte* at) noexcept {
  return __atomic_load_n(reinterpret_cast<const Word*>(at), __ATOMIC_RELAXED);
}

GCL_RACY void store_page_word(std::byte* at, uint64_t word) noexcept {
  __atomic_store_n(reinterpret_cast<Word*>(at), word, __ATOMIC_RELAXED);
}

}  // namespace bufmgr

#endif
