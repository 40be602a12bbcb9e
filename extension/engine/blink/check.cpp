#include "extension/engine/blink/check.hpp"

#include "extension/engine/blink/search.hpp"

namespace engine::blink {

bool Checker::wrong(PageId page, const char* what) {
  if (report_.sound) {
    report_.sound = false;
    report_.page = page;
    report_.what = what;
  }
  return false;
}

int Checker::compare(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (const int c = (*key_order_)(a, b); c != 0) return c;
  const bool first = is_pivot(a.data()), second = is_pivot(b.data());  // blink.pivot-tid-minus-infinity
  if (first || second) return int(second) - int(first);
  const Tid x = load_tid(a.data()), y = load_tid(b.data());
  return x < y ? -1 : x == y ? 0 : 1;
}

Status Checker::read(Page& page, PageId id, bool& node) {
  page.id = id;
  if (const Status s = tree_.pool_->copy_page(*session_, id, page.bytes); !s) return s;
  node = read_head(Source::plain(page.bytes), page.head);
  Link link;
  for (uint32_t i = 0; node && i < page.head.count; ++i)
    node = read_link(Source::plain(page.bytes), page.head, i, link);
  if (!node) wrong(id, "not a sound node");
  return {};
}

Result<CheckReport> Checker::run() {
  report_ = {};
  bool node = false;
  if (const Status s = read(page_, tree_.root_, node); !s) return s.error();
  if (!node) return report_;
  if (page_.head.special.has_right() || page_.head.special.left.valid()) wrong(tree_.root_, "the root has a sibling");
  report_.height = page_.head.special.level;
  PageId first = tree_.root_, parent_first;
  for (int level = int(report_.height); level >= 0 && report_.sound; --level) {
    if (const Status s = check_level(first, uint16_t(level), parent_first); !s) return s.error();
    if (!report_.sound || level == 0) break;
    if (const Status s = read(page_, first, node); !s) return s.error();
    if (!node) return report_;
    parent_first = first;
    const PageId child = child_at(page_.bytes, page_.head, 0);
    const auto below = uint16_t(level - 1);
    if (const Status s = first_of_level(*tree_.pool_, *session_, child, below, first); !s) return s.error();
  }
  return report_;
}

Status Checker::check_level(PageId first, uint16_t level, PageId parent_first) {
  Key low;
  PageId left;
  bool linked = true;
  parent_.id = {};
  for (PageId id = first; id.valid() && report_.sound;) {
    bool node = false;
    if (const Status s = read(page_, id, node); !s) return s;
    if (node && page_.head.gone()) {  // its range is the next page's
      if (!check_gone(page_, level, left)) return {};
      ++report_.half_dead;
      left = id;
      id = page_.head.special.right;
      continue;
    }
    if (!node || !check_page(page_, level, left, low) || !check_space(page_)) return {};
    if (parent_first.valid())
      if (const Status s = check_downlink(page_, low, linked, parent_first); !s) return s;
    ++report_.pages;
    if (level == 0) report_.entries += page_.head.count;
    linked = !page_.head.incomplete();
    report_.incomplete += !linked;
    if (page_.head.special.has_right()) low.set(high_of(page_.bytes, page_.head));
    left = id;
    id = page_.head.special.right;
  }
  if (!report_.sound || !parent_first.valid()) return {};
  if (parent_index_ != parent_.head.count || parent_.head.special.has_right())
    wrong(parent_.id, "downlinks behind the last page");
  if (!linked) wrong(left, "the last page's split is incomplete");
  return {};
}

// `low` is the left sibling's high key (blink.page-covers-range).
bool Checker::check_page(const Page& page, uint16_t level, PageId left, const Key& low) {
  const Head& head = page.head;
  if (head.special.level != level) return wrong(page.id, "another level than its siblings");
  if (head.special.left != left) return wrong(page.id, "its left link is not its left sibling");
  const uint32_t first = head.leaf() ? 0 : 1;
  for (uint32_t i = first; i < head.count; ++i) {
    const auto key = key_at(page.bytes, head, i);
    if (head.leaf() && is_pivot(key.data())) return wrong(page.id, "an entry without a tid");
    if (i > first && compare(key_at(page.bytes, head, i - 1), key) >= 0) return wrong(page.id, "entries out of order");
    if (low.bytes != 0 && compare(key, low.span()) < 0) return wrong(page.id, "an entry left of the page");
    if (head.special.has_right() && compare(key, high_of(page.bytes, head)) >= 0)
      return wrong(page.id, "an entry right of the page");
  }
  if (low.bytes != 0 && head.special.has_right() && compare(low.span(), high_of(page.bytes, head)) >= 0)
    return wrong(page.id, "high key at or before the low key");
  return true;
}

bool Checker::check_gone(const Page& page, uint16_t level, PageId left) {
  const Head& head = page.head;
  if (head.deleted()) return wrong(page.id, "a deleted page in the chain");
  if (head.special.level != level) return wrong(page.id, "another level than its siblings");
  if (head.special.left != left) return wrong(page.id, "its left link is not its left sibling");
  if (head.incomplete() || head.count > (head.leaf() ? 0 : 1)) return wrong(page.id, "a half-dead page in use");
  return head.special.has_right() || wrong(page.id, "the last page is half-dead");
}

bool Checker::check_space(const Page& page) {
  uint32_t used = page.head.special.garbage + align8(uint32_t(high_of(page.bytes, page.head).size()));
  for (uint32_t i = 0; i < page.head.count; ++i)
    used += align8(uint32_t(key_at(page.bytes, page.head, i).size()) + page.head.entry_skip());
  return used == kSpecialAt - page.head.upper || wrong(page.id, "space not accounted for");
}

// Downlinks come in the order of the pages, from the same keys; only a page whose left sibling is split incompletely
// has none.
Status Checker::check_downlink(const Page& page, const Key& low, bool linked, PageId parent_first) {
  bool node = true;
  if (!parent_.id.valid() || (parent_index_ == parent_.head.count && parent_.head.special.has_right())) {
    PageId next = parent_.id.valid() ? parent_.head.special.right : parent_first;
    do {
      if (const Status s = read(parent_, next, node); !s || !node) return s;
      next = parent_.head.special.right;
    } while (parent_.head.gone());
    parent_index_ = 0;
  }
  if (!linked) return {};
  if (parent_index_ == parent_.head.count || child_at(parent_.bytes, parent_.head, parent_index_) != page.id) {
    wrong(page.id, "no downlink in its place");
    return {};
  }
  const bool first = parent_index_ == 0;  // blink.first-key-minus-infinity
  const auto pivot = key_at(parent_.bytes, parent_.head, parent_index_++);
  if (!first && (pivot.size() != low.bytes || std::memcmp(pivot.data(), low.image, low.bytes) != 0))
    wrong(page.id, "its downlink has another key than its left sibling's high key");
  return {};
}

}  // namespace engine::blink
