#include "extension/engine/blink/split_location.hpp"

#include <algorithm>
#include <type_traits>

namespace engine::blink {
namespace {

// Percent of a page.
constexpr uint32_t kFillOneKey = 96;  // of a leaf with one key, whose tids come in order: nothing else will come there
constexpr uint32_t kSlackLeaf = 5;    // how far from the wanted place a better separator is searched
constexpr uint32_t kSlackInner = 8;
constexpr uint32_t kSlackEquals = 25;  // the same, if all keys near the middle are equal
constexpr uint32_t kSlackEqualsRun = 10;

// A run is believed if inserts in no order would leave one like it with a chance of less than one in this many.
constexpr double kChance = 1.0 / 16;
constexpr uint32_t kRunMin = 16;  // entries of a run that are tested, if as many have come

// A page to be split.  Plain data.
struct Sheet {
  const std::byte* page;
  const Head* head;
  Comparator* compare;
  uint32_t before[kPerPageMax + 1];  // space of the entries before this one
  uint32_t count() const { return head->count; }
  uint32_t total() const { return before[head->count]; }
  std::span<const std::byte> key(uint32_t i) const { return key_at(page, *head, i); }
};
static_assert(std::is_trivially_destructible_v<Sheet>);  // blink.compare-private-memory

void measure(Sheet& sheet) {
  sheet.before[0] = 0;
  for (uint32_t i = 0; i < sheet.count(); ++i)
    sheet.before[i + 1] = sheet.before[i] + space_of(sheet.head->entry_skip() + uint32_t(sheet.key(i).size()));
}

// The split location that leaves about this much on the left.
uint32_t split_for(const Sheet& sheet, uint32_t bytes) {
  const uint32_t* end = sheet.before + sheet.count();
  const auto split = uint32_t(std::lower_bound(sheet.before + 1, end, bytes) - sheet.before);
  return std::min(split, sheet.count() - 1);
}

struct Window {
  uint32_t from, to;  // split locations, both included
};
Window window_around(const Sheet& sheet, uint32_t wanted, uint32_t down, uint32_t up) {
  const uint32_t unit = sheet.total() / 100;
  const uint32_t at = sheet.before[wanted];
  Window window{split_for(sheet, at > down * unit ? at - down * unit : 0), wanted};
  while (window.to + 1 < sheet.count() && sheet.before[window.to + 1] <= at + up * unit) ++window.to;
  return {std::min(window.from, wanted), window.to};
}

// Calls `better(split)` for the split locations of a window, the nearest to `wanted` first, until it returns true.
template <class Better>
void nearest_first(const Window& window, uint32_t wanted, const Better& better) {
  for (uint32_t far = 0; far <= std::max(wanted - window.from, window.to - wanted); ++far) {
    if (wanted + far <= window.to && better(wanted + far)) return;
    if (far != 0 && wanted >= window.from + far && better(wanted - far)) return;
  }
}

// The nearest of those whose separator needs the fewest parts.  False: all keys are equal there.
bool split_between_keys(const Sheet& sheet, uint32_t wanted, const Window& window, uint32_t& split) {
  // Of keys in order, none differ earlier than the first and the last do.
  const uint32_t least = sheet.compare->equal_parts(sheet.key(window.from - 1), sheet.key(window.to));
  if (least == Comparator::kAllParts) return false;
  uint32_t fewest = Comparator::kAllParts;
  nearest_first(window, wanted, [&](uint32_t at) {
    const uint32_t parts = sheet.compare->equal_parts(sheet.key(at - 1), sheet.key(at));
    if (parts < fewest) {
      fewest = parts;
      split = at;
    }
    return fewest <= least;
  });
  return true;
}

uint32_t leaf_split(const Sheet& sheet, uint32_t index, uint32_t fill) {
  const Run run = run_at(sheet.page, *sheet.head, index);
  const bool last = !sheet.head->special.has_right();
  const uint32_t at = sheet.before[index], total = sheet.total();
  uint32_t percent = 50;
  if (run == Run::kAscending || (last && run == Run::kNone)) {
    // What has come goes left, but never more than `fill`: the page needs room where the run has not ended.
    percent = fill;
    const bool ends = index == sheet.count();
    if (ends && sheet.compare->equal_parts(sheet.key(0), sheet.key(index - 1)) == Comparator::kAllParts)
      percent = std::max(percent, kFillOneKey);
    if (run == Run::kAscending && at <= total * percent / 100) percent = 0;
  } else if (run == Run::kDescending) {
    percent = 100 - fill;
    if (at >= total * percent / 100) percent = 0;
  }
  const bool in_middle = run == Run::kNone && !last;
  uint32_t split = percent != 0 ? split_for(sheet, total * percent / 100) : index;
  split = std::clamp(split, 1u, sheet.count() - 1);
  if (split_between_keys(sheet, split, window_around(sheet, split, kSlackLeaf, kSlackLeaf), split)) return split;
  const uint32_t wide = in_middle ? kSlackEquals : kSlackEqualsRun;
  (void)split_between_keys(sheet, split, window_around(sheet, split, wide, in_middle ? wide : kSlackLeaf), split);
  return split;
}

// The key of the right page's first entry goes up: the shortest near the wanted place.
uint32_t inner_split(const Sheet& sheet, uint32_t index) {
  const bool tail = !sheet.head->special.has_right() && index == sheet.count();
  const uint32_t wanted = split_for(sheet, sheet.total() * (tail ? kFillInner : 50) / 100);
  uint32_t split = wanted;
  nearest_first(window_around(sheet, wanted, kSlackInner, kSlackInner), wanted, [&](uint32_t at) {
    if (sheet.key(at).size() < sheet.key(split).size()) split = at;
    return false;
  });
  return split;
}

// Along one direction: whether the `width` entries that end at the position came in order.  Not every neighbour has
// to have come later than the one before it: sessions that insert at once are not equally fast.
template <class Offset>
bool came_in_order(uint32_t width, uint32_t whole_upper, const Offset& offset) {
  for (uint32_t i = 0; i < width; ++i)
    if (offset(i) >= whole_upper) return false;
  const uint32_t half = width / 2;
  uint32_t later = 0;
  for (uint32_t i = 0; i < half; ++i) later += offset(i) < offset(i + (width - half));
  return later * 4 >= half * 3;
}

}  // namespace

Run run_at(const std::byte* page, const Head& head, uint32_t index) noexcept {
  const auto offset = [&](uint32_t i) {
    Link link;
    VERIFY(read_link(Source::plain(page), head, i, link));
    return link.offset;
  };
  const uint32_t whole_upper = head.special.whole_upper;
  uint32_t fresh = 0;
  for (uint32_t i = 0; i < head.count; ++i) fresh += offset(i) < whole_upper;
  uint32_t width = 0;
  double chance = 1;
  for (; chance > kChance && width < fresh; ++width) chance *= double(fresh) / head.count;
  if (width == 0 || chance > kChance) return Run::kNone;
  width = std::max(width, std::min(fresh, kRunMin));
  if (index >= width && came_in_order(width, whole_upper, [&](uint32_t i) { return offset(index - 1 - i); }))
    return Run::kAscending;
  if (index + width <= head.count && came_in_order(width, whole_upper, [&](uint32_t i) { return offset(index + i); }))
    return Run::kDescending;
  return Run::kNone;
}

uint32_t choose_split(const std::byte* page, const Head& head, uint32_t index, uint32_t fill, Comparator* compare) {
  VERIFY(head.count >= 2 && index <= head.count && (!head.leaf() || compare != nullptr));
  Sheet sheet;
  sheet.page = page;
  sheet.head = &head;
  sheet.compare = compare;
  measure(sheet);
  return head.leaf() ? leaf_split(sheet, index, fill) : inner_split(sheet, index);
}

}  // namespace engine::blink
