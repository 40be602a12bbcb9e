// Composing changes of a heap page: what insert, update, lock and prune write through a mini-transaction.
// REQUIRES, everywhere: the page is joined, and the caller has checked that what is asked fits.
#pragma once

#include <cstddef>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/heap/heap_page.hpp"

namespace engine {

using bufmgr::ExclusiveGuard;
using bufmgr::MiniTransaction;

// Log space of one row put on a page that may have to be formatted, with its line pointer and header.
constexpr uint32_t log_for_row(uint32_t row_bytes) { return coherence::kPageSize + row_bytes + 128; }
inline constexpr uint32_t kLogForHeader = 64;
inline constexpr uint32_t kLogForLock = 64;  // an entry of a lock page

// The part of the page header that heap pages change.
struct PageSpace {
  uint16_t flags, lower, upper, special, superseded;
  static PageSpace of(const PageHeader& header) {
    return {header.flags, header.lower, header.upper, header.special, header.reserved};
  }
};
inline constexpr uint32_t kPageSpaceAt = offsetof(PageHeader, flags);
static_assert(kPageSpaceAt + sizeof(PageSpace) == sizeof(PageHeader));

inline void set_space(MiniTransaction& change, ExclusiveGuard& page, const PageSpace& space) {
  change.update(page, kPageSpaceAt, &space, sizeof space);
}

// Makes a page that was never used a heap page of the relation.
inline void format_if_unused(MiniTransaction& change, ExclusiveGuard& page, uint32_t relation) {
  if (page.header().type == PageType::kUnused) change.format(page, PageType::kHeap, relation);
}

// What free_line(), place_for() and room() say of a page that may still have to be formatted.
inline uint16_t line_for(const ExclusiveGuard& page) {
  return page.header().type == PageType::kUnused ? uint16_t{1} : HeapPage(page.bytes()).free_line();
}
inline uint32_t place_for(const ExclusiveGuard& page, uint16_t line, uint32_t row_bytes) {
  if (page.header().type == PageType::kUnused) return coherence::kPageSize - align8(row_bytes);
  return HeapPage(page.bytes()).place_for(line, row_bytes);
}
inline uint32_t room(const ExclusiveGuard& page) { return HeapPage(page.bytes()).room(); }

// Puts a row (header and body) at `line`, `place` bytes into the page.  `like`: a row of the page whose body resembles
// its body (bufmgr.redo-reads-no-hints: hints are in headers).
inline void put_row(MiniTransaction& change, ExclusiveGuard& page, uint16_t line, uint32_t place, const std::byte* row,
                    uint32_t bytes, Line like = {}) {
  HeapPage view(page.bytes());
  PageSpace space = PageSpace::of(page.header());
  if (place < space.upper) space.upper = uint16_t(place);
  if (line > view.lines()) {
    space.lower = uint16_t(space.lower + 4);
    space.flags = uint16_t(space.flags & ~HeapPage::kHasUnused);  // free_line() found none
  }
  if (like.normal() && bytes >= kRowHeaderBytes + bufmgr::kMiniCopyMin) {
    change.write(page, place, row, kRowHeaderBytes);
    change.write_like(page, place + kRowHeaderBytes, row + kRowHeaderBytes, bytes - kRowHeaderBytes,
                      like.offset() + kRowHeaderBytes, like.bytes() - kRowHeaderBytes);
  } else {
    change.write(page, place, row, bytes);
  }
  change.set(page, HeapPage::line_offset(line), Line::normal(place, bytes));
  set_space(change, page, space);
}

// Rewrites the parts of a row's header that say how it ends: deleter, commands, next version, flags.
inline void put_ending(MiniTransaction& change, ExclusiveGuard& page, uint16_t line, const RowHeader& row) {
  constexpr uint32_t kFrom = offsetof(RowHeader, deleter);
  change.update(page, HeapPage(page.bytes()).line(line).offset() + kFrom,
                reinterpret_cast<const std::byte*>(&row) + kFrom, kRowHeaderBytes - kFrom);
}

// Counts versions that prune may find dead later (heap.superseded-are-counted).
inline void count_superseded(MiniTransaction& change, ExclusiveGuard& page) {
  PageSpace space = PageSpace::of(page.header());
  if (space.superseded == 0xffff) return;
  ++space.superseded;
  set_space(change, page, space);
}

}  // namespace engine
