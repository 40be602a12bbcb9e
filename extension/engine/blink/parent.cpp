// From a page to the one above it, by the child's page number.
#include "extension/engine/blink/split.hpp"

namespace engine::blink {

uint32_t index_of_child(const std::byte* page, const Head& head, PageId child) {
  uint32_t i = 0;
  while (i < head.count && child_at(page, head, i) != child) ++i;
  return i;
}

Status find_parent(const Ground& g, PageId child, uint16_t level, const Path& path, PageId& parent) {
  alignas(8) std::byte bytes[kPageSize];
  PageId page = path.page[level];
  for (bool from_first = false;;) {
    if (!page.valid()) {
      parent = {};
      if (from_first) return {};
      GCL_TRY(leftmost(*g.pool, *g.session, g.root, level, page));
      from_first = true;
    }
    GCL_TRY(g.pool->copy_page(*g.session, page, bytes));
    Head head;
    if (!read_head(Source::plain(bytes), head)) return Errc::kCorrupt;
    if (head.special.level != level) {  // the root was there and has grown
      page = {};
      from_first = false;
      continue;
    }
    if (!head.gone() && index_of_child(bytes, head, child) < head.count) {
      parent = page;
      return {};
    }
    page = head.special.right;
  }
}

}  // namespace engine::blink
