// HeapPage: a slotted page of row versions, in private memory or under a guard.  Reading only: changes are composed by
// heap_change.cpp and written through a mini-transaction.
//
//   PageHeader | line pointers ... lower | gap | upper ... rows, 8-aligned, with holes | kPageSize
//
// Rows stay where they are as long as there is a hole or the gap for a new one: redo is physical, and moving half a
// page for each dead version would log it each time.
//
// PageHeader::reserved counts versions superseded since the last prune (a hint; heap.superseded-are-counted).
#pragma once

#include <algorithm>
#include <cstdint>

#include "bufmgr/base/page.hpp"
#include "extension/engine/heap/row.hpp"

namespace engine {

using bufmgr::PageHeader;
using bufmgr::PageType;

// PostgreSQL's bitmaps of TIDs hold offsets up to this (MaxHeapTuplesPerPage).
inline constexpr uint16_t kLinesMax = 291;

enum class LineState : uint8_t {
  kUnused = 0,
  kNormal = 1,
  kRedirect = 2,  // offset() is the line pointer where the chain goes on
  kDead = 3,      // no row; index entries may still point here
};

// The largest row, header included, that fits an empty page.
inline constexpr uint32_t kRowBytesMax = coherence::kPageSize - bufmgr::kPageBody - 8;
static_assert(kRowBytesMax % 8 == 0);

// A line pointer: 15 bits offset, 2 bits state, 15 bits length, as PostgreSQL's ItemId.
struct Line {
  uint32_t raw = 0;
  static constexpr Line normal(uint32_t offset, uint32_t bytes) { return {offset | 1u << 15 | bytes << 17}; }
  static constexpr Line redirect(uint16_t line) { return {line | 2u << 15}; }
  static constexpr Line dead() { return {3u << 15}; }
  static constexpr Line unused() { return {0}; }
  constexpr LineState state() const { return LineState(raw >> 15 & 3); }
  constexpr uint32_t offset() const { return raw & 0x7fff; }
  constexpr uint32_t bytes() const { return raw >> 17; }
  constexpr bool normal() const { return state() == LineState::kNormal; }
  // Whether it names a row inside the page, and no longer than readers' buffers (bytes read optimistically may be
  // torn).
  constexpr bool sane() const {
    return normal() && offset() >= bufmgr::kPageBody && offset() % 8 == 0 && bytes() >= kRowHeaderBytes &&
           bytes() <= kRowBytesMax && offset() + bytes() <= coherence::kPageSize;
  }
};
static_assert(sizeof(Line) == 4);

constexpr uint32_t align8(uint32_t n) { return (n + 7) & ~7u; }

class HeapPage {
 public:
  explicit HeapPage(const std::byte* page) : page_(page) {}
  const PageHeader& header() const { return *reinterpret_cast<const PageHeader*>(page_); }
  bool is_heap() const { return header().type == PageType::kHeap; }
  // Line pointers are numbered 1..lines().
  uint16_t lines() const { return is_heap() ? uint16_t((header().lower - bufmgr::kPageBody) / 4) : uint16_t{0}; }
  static constexpr uint16_t line_offset(uint16_t line) { return uint16_t(bufmgr::kPageBody + (line - 1) * 4u); }
  Line line(uint16_t line) const { return *reinterpret_cast<const Line*>(page_ + line_offset(line)); }
  const std::byte* row(uint16_t n) const { return page_ + line(n).offset(); }
  RowHeader row_header(uint16_t n) const { return row_header_at(line(n)); }
  RowHeader row_header_at(Line line) const {
    RowHeader header;
    std::memcpy(&header, page_ + line.offset(), sizeof header);
    return header;
  }
  // Bytes between line pointers and rows.
  uint32_t gap() const { return uint32_t{header().upper} - header().lower; }

  // A free line pointer for a new row: the first unused one, or one more; 0: the page has kLinesMax.
  uint16_t free_line() const {
    uint16_t n = lines();
    if (header().flags & kHasUnused)
      for (uint16_t i = 1; i <= n; ++i)
        if (line(i).state() == LineState::kUnused) return i;
    return n < kLinesMax ? uint16_t(n + 1) : uint16_t{0};
  }
  // Where a row of that many bytes may lie, with `line` as returned by free_line(): below the others, or in a hole; 0:
  // nowhere.
  uint32_t place_for(uint16_t line, uint32_t row_bytes) const;
  // Bytes of the largest row (rounded up to 8) that place_for() finds a place for.
  uint32_t room() const;
  // What a look at all line pointers tells.
  struct Use {
    uint32_t unused;     // line pointers
    uint32_t row_bytes;  // of all rows, each rounded up to 8
  };
  Use use() const;
  // Bytes of the largest row that would find a place if rows were moved together.
  uint32_t room_compacted(const Use& use) const;
  // How many new rows would find a line pointer, without and with the room that compaction would give to rows of so
  // many bytes and to their line pointers.
  uint32_t lines_left(const Use& use) const { return use.unused + std::min(gap() / 4, uint32_t{kLinesMax} - lines()); }
  uint32_t lines_left_compacted(const Use& use, uint32_t row_bytes) const;

  static constexpr uint16_t kHasUnused = 1;  // PageHeader::flags: some line pointer may be unused
  static constexpr uint16_t kHasHoles = 2;   // there may be free bytes among the rows

 private:
  // The first run of at least `bytes` free bytes among the rows, 0 if none; *largest: the longest run, if asked.
  uint32_t hole(uint32_t bytes, uint32_t* largest) const;

  const std::byte* page_;
};

// Where a page that redo made differs from the page otherwise than by hints (log.hints-without-redo): the first such
// byte, rounded down to 8; kPageSize: nowhere.  `page` may have a hint where `replayed` has the creator it is about:
// in rows, and in the bytes that rows have left behind.
uint32_t replay_differs_at(const std::byte* page, const std::byte* replayed) noexcept;

}  // namespace engine
