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
    for (uint32_t end = first + count; first < end;) {
      const uint32_t bit = first % 64, part = std::min(64 - bit, end - first);
      word_[first / 64] |= (~uint64_t{0} >> (64 - part)) << bit;
      first += part;
    }
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
  uint64_t word_[kUnits / 64] = {};
};

}  // namespace

uint32_t HeapPage::hole(uint32_t bytes, uint32_t* largest) const {
  Units units;
  for (uint16_t i = 1, n = lines(); i <= n; ++i)
    if (line(i).normal()) units.take(line(i).offset() / 8, align8(line(i).bytes()) / 8);
  uint32_t found = 0;
  const uint32_t end = header().special / 8u;
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

uint32_t HeapPage::room_compacted() const {
  uint32_t taken = header().lower + 4u;
  for (uint16_t i = 1; i <= lines(); ++i)
    if (line(i).normal()) taken += align8(line(i).bytes());
  return taken < coherence::kPageSize ? (coherence::kPageSize - taken) & ~7u : 0;
}

}  // namespace engine
