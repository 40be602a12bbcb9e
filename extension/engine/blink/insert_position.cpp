#include "extension/engine/blink/insert.hpp"

namespace engine::blink {
namespace {

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// Whether what follows entry `index` - 1 is what followed the position.
bool same_after(const std::byte* page, const Head& head, const InsertPosition& where, uint32_t index) {
  if (where.after.bytes != 0) return index < head.count && same(key_at(page, head, index), where.after.span());
  if (index != head.count || head.special.has_right() != (where.high.bytes != 0)) return false;
  return where.high.bytes == 0 || same(high_of(page, head), where.high.span());
}

}  // namespace

Errc read_position(Comparator& compare, const Seek& seek, const PageReader& reader, const Head& head,
                   InsertPosition& where) {
  const Source& page = reader.source();
  where.page = reader.id();
  where.version = head.version;
  where.before.bytes = where.after.bytes = where.high.bytes = 0;
  if (const Errc e = position(compare, seek, page, head, 0, head.count, where.index); e != Errc::kOk) return e;
  bool sound = true;
  if (where.index > 0) sound = read_key(page, head, where.index - 1, where.before);
  if (where.index < head.count)
    sound = sound && read_key(page, head, where.index, where.after);
  else if (head.special.has_right())
    sound = sound && read_high(page, head, where.high);
  if (!sound) return torn_or_corrupt(page);
  return page.validate() ? Errc::kOk : Errc::kRestart;
}

bool find_position(const bufmgr::ExclusiveGuard& page, const Head& head, const InsertPosition& where, uint32_t& index) {
  index = where.index;
  if (head.version == where.version) return true;
  if (!head.leaf() || head.gone()) return false;  // the root has grown; the page has left the tree
  const std::byte* bytes = page.bytes();
  // The page begins where it began, or further left, with nothing in between (blink.page-covers-range).
  if (where.before.bytes == 0) {
    index = 0;
    return same_after(bytes, head, where, 0);
  }
  for (index = 1; index <= head.count; ++index)
    if (same(key_at(bytes, head, index - 1), where.before.span())) return same_after(bytes, head, where, index);
  return false;
}

}  // namespace engine::blink
