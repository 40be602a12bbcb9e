#include "extension/engine/blink/insert.hpp"

namespace engine::blink {
namespace {

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// Whether what follows entry `index` - 1 is what followed the gap.
bool same_after(const std::byte* page, const Head& head, const Gap& gap, uint32_t index) {
  if (gap.after.bytes != 0) return index < head.count && same(key_at(page, head, index), gap.after.span());
  if (index != head.count || head.special.has_right() != (gap.high.bytes != 0)) return false;
  return gap.high.bytes == 0 || same(high_of(page, head), gap.high.span());
}

}  // namespace

Errc read_gap(Comparator& compare, const Seek& seek, const Look& look, const Head& head, Gap& gap) {
  const Source& page = look.source();
  gap.page = look.id();
  gap.version = head.version;
  gap.before.bytes = gap.after.bytes = gap.high.bytes = 0;
  if (const Errc e = position(compare, seek, page, head, 0, head.count, gap.index); e != Errc::kOk) return e;
  bool sound = true;
  if (gap.index > 0) sound = read_key(page, head, gap.index - 1, gap.before);
  if (gap.index < head.count)
    sound = sound && read_key(page, head, gap.index, gap.after);
  else if (head.special.has_right())
    sound = sound && read_high(page, head, gap.high);
  if (!sound) return torn_or_corrupt(page);
  return page.validate() ? Errc::kOk : Errc::kRestart;
}

bool find_gap(const bufmgr::ExclusiveGuard& page, const Head& head, const Gap& gap, uint32_t& index) {
  index = gap.index;
  if (head.version == gap.version) return true;
  if (!head.leaf() || head.gone()) return false;  // the root has grown; the page has left the tree
  const std::byte* bytes = page.bytes();
  // The page begins where it began, or further left, with nothing in between (blink.page-covers-range).
  if (gap.before.bytes == 0) {
    index = 0;
    return same_after(bytes, head, gap, 0);
  }
  for (index = 1; index <= head.count; ++index)
    if (same(key_at(bytes, head, index - 1), gap.before.span())) return same_after(bytes, head, gap, index);
  return false;
}

}  // namespace engine::blink
