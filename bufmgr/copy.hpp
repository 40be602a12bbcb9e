// Copies between a page and private memory while others may write the page (rule G4) or read it optimistically.
//
// Word loads and stores are relaxed atomics; what was loaded counts only after the caller has validated.  The functions
// are hidden from ThreadSanitizer: the other side of the race may be a peer's copy into a landing frame, which is
// plain.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bufmgr {

// From a page into private memory.
void copy_from_page(void* to, const std::byte* page, uint32_t offset, uint32_t bytes) noexcept;
// The whole page; `to` is 8-byte aligned.
void copy_whole_page(void* to, const std::byte* page) noexcept;
// One aligned word of a page, in either direction.
uint64_t load_page_word(const std::byte* at) noexcept;
void store_page_word(std::byte* at, uint64_t word) noexcept;

}  // namespace bufmgr
