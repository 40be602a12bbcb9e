#include "extension/engine/heap/heap_page.hpp"

#include <algorithm>

namespace engine {

namespace {

constexpr uint32_t kUnits = coherence::kPageSize / 8;

// Which 8-byte units of a page are taken.
class Units {
 public:
  void take(uint32_t first, uint32_t count) {
    for (uint32_t unit = first; unit < first + count; ++unit) word_[unit / 64] |= uint64_t{1} << unit % 64;
  }
  bool taken(uint32_t unit) const { return word_[unit / 64] >> unit % 64 & 1; }

 private:
  uint64_t word_[kUnits / 64] = {};
};

}  // namespace

uint32_t HeapPage::hole(uint32_t bytes, uint32_t* largest) const {
  Units units;
  for (uint16_t i = 1; i <= lines(); ++i)
    if (line(i).normal()) units.take(line(i).offset() / 8, align8(line(i).bytes()) / 8);
  uint32_t run = 0, found = 0;
  for (uint32_t unit = header().upper / 8; unit < header().special / 8u; ++unit) {
    run = units.taken(unit) ? 0 : run + 1;
    if (largest != nullptr) *largest = std::max(*largest, run * 8);
    if (found == 0 && run * 8 >= bytes) found = (unit + 1 - run) * 8;
    if (found != 0 && largest == nullptr) break;
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
