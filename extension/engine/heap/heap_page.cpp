#include "extension/engine/heap/heap_page.hpp"

#include <algorithm>
#include <bit>

namespace engine {

namespace {

constexpr uint32_t kUnits = coherence::kPageSize / 8;

// Which 8-byte units of a page are taken.
class Units {
 public:
  void take(uint32_t first, uint32_t count) {
    for (; count >= 64; first += 64, count -= 64) take_few(first, 64);
    if (count != 0) take_few(first, count);
  }
  // The first unit at or after `from` that is taken, or free; kUnits: none.
  uint32_t next(uint32_t from, bool taken) const {
    for (uint32_t i = from / 64; i < kUnits / 64; ++i) {
      uint64_t bits = taken ? word_[i] : ~word_[i];
      if (i == from / 64) bits &= ~uint64_t{0} << from % 64;
      if (bits != 0) return i * 64 + uint32_t(std::countr_zero(bits));
    }
    return kUnits;
  }

 private:
  // REQUIRES: 1 <= count <= 64.
  void take_few(uint32_t first, uint32_t count) {
    const uint64_t mask = ~uint64_t{0} >> (64 - count);
    const uint32_t bit = first % 64;
    uint64_t* const word = word_ + first / 64;
    word[0] |= mask << bit;
    if (bit + count > 64) word[1] |= mask >> (64 - bit);
  }

  uint64_t word_[kUnits / 64] = {};
};

}  // namespace

uint32_t HeapPage::hole(uint32_t bytes, uint32_t* largest) const {
  const uint16_t n = lines();
  const auto* const line = reinterpret_cast<const Line*>(page_ + line_offset(1));
  const uint32_t end = header().special / 8u;
  // All that is free among the rows: mostly the answer, because updates fill the holes that prune leaves.
  const uint32_t left = header().special - uint32_t{header().upper} - use().row_bytes;
  if (left == 0 || (left < bytes && largest == nullptr)) return 0;
  Units units;
  for (uint16_t i = 0; i < n; ++i)
    if (line[i].normal()) units.take(line[i].offset() / 8, align8(line[i].bytes()) / 8);
  uint32_t found = 0;
  for (uint32_t unit = units.next(header().upper / 8, false); unit < end;) {
    const uint32_t stop = std::min(units.next(unit, true), end);
    const uint32_t run = (stop - unit) * 8;
    if (largest != nullptr) *largest = std::max(*largest, run);
    if (found == 0 && run >= bytes) found = unit * 8;
    if (found != 0 && largest == nullptr) break;
    unit = units.next(stop, false);
  }
  return found;
}

uint32_t HeapPage::place_for(uint16_t line_number, uint32_t row_bytes) const {
  uint32_t bytes = align8(row_bytes), pointer = line_number > lines() ? 4 : 0;
  if (line_number == 0 || gap() < pointer) return 0;
  if (gap() >= bytes + pointer) return header().upper - bytes;
  return header().flags & kHasHoles ? hole(bytes, nullptr) : 0;
}

uint32_t HeapPage::room() const {
  if (!is_heap()) return kRowBytesMax;
  uint32_t most = gap() >= 4 ? (gap() - 4) & ~7u : 0;
  uint16_t number = free_line();
  if (number == 0 || (number > lines() && gap() < 4)) return 0;
  if (header().flags & kHasHoles) hole(coherence::kPageSize, &most);
  return most;
}

// Without a branch that depends on a line pointer.  Only those of rows have a length.
HeapPage::Use HeapPage::use() const {
  const auto* const line = reinterpret_cast<const Line*>(page_ + line_offset(1));
  uint32_t units = 0, used = 0;
  const uint32_t n = lines();
  for (uint32_t i = 0; i < n; ++i) {
    units += (line[i].raw + (7u << 17)) >> 20;  // bytes, in eights
    used += (line[i].raw & 3u << 15) != 0;
  }
  return {.unused = n - used, .row_bytes = units * 8};
}

uint32_t HeapPage::room_compacted(const Use& use) const {
  const uint32_t taken = header().lower + 4u + use.row_bytes;
  return taken < coherence::kPageSize ? (coherence::kPageSize - taken) & ~7u : 0;
}

uint32_t HeapPage::lines_left_compacted(const Use& use, uint32_t row_bytes) const {
  const uint32_t room = room_compacted(use) + use.unused * 4;
  return std::min(room / (align8(row_bytes) + 4), use.unused + uint32_t{kLinesMax} - lines());
}

namespace {

bool is_hint(RowTxn creator) {
  return creator.kind() == RowTxnKind::kCommitted || creator.kind() == RowTxnKind::kFrozen ||
         creator.kind() == RowTxnKind::kAborted;
}

// How many bytes from `at` on, of eight, are no creator word, nor what is left of one: all of header and line pointers,
// and what a row has there behind its own.
uint32_t fixed_bytes(const HeapPage& page, uint32_t at) {
  if (!page.is_heap()) return 8;
  if (at < page.header().lower) return std::min(page.header().lower - at, 8u);
  for (uint16_t i = 1; i <= page.lines(); ++i) {
    const Line line = page.line(i);
    if (line.normal() && at > line.offset() && at < line.offset() + line.bytes())
      return std::min(line.offset() + line.bytes() - at, 8u);
  }
  return 0;
}

}  // namespace

uint32_t replay_differs_at(const std::byte* page, const std::byte* replayed) noexcept {
  for (uint32_t at = 0; at < coherence::kPageSize; at += 8) {
    RowTxn is, made;
    std::memcpy(&is, page + at, sizeof is);
    std::memcpy(&made, replayed + at, sizeof made);
    if (is == made) continue;
    const bool hinted = made.kind() == RowTxnKind::kInserted && is_hint(is);
    if (!hinted) return at;
    const uint32_t fixed = fixed_bytes(HeapPage(page), at);
    if (fixed == 8 || std::memcmp(page + at, replayed + at, fixed) != 0) return at;
  }
  return coherence::kPageSize;
}

}  // namespace engine
