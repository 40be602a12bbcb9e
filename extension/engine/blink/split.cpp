#include "extension/engine/blink/split.hpp"

#include "extension/engine/blink/image.hpp"
#include "extension/engine/blink/split_location.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine::blink {
namespace {

using bufmgr::ExclusiveGuard;
using bufmgr::MiniTransaction;
using bufmgr::Others;
using bufmgr::WaitOrder;

// A page in private memory, and the two it becomes.  Plain data.
struct Plan {
  alignas(8) std::byte page[kPageSize];
  Head head;
  Key separator;
  PageImage left, right;
};

uint32_t space_at(const Plan& plan, uint32_t i) {
  return space_of(plan.head.entry_skip() + uint32_t(key_at(plan.page, plan.head, i).size()));
}

// Any split location is possible: what the first entry of the right page took is room enough for a high key made from
// it.  Runs user code (shorten): nothing on the stack owns anything.
void choose_separator(Plan& plan, uint32_t split, Comparator* compare) {
  const auto right = key_at(plan.page, plan.head, split);
  uint32_t bytes = 0;
  if (plan.head.leaf() && compare != nullptr)
    bytes = compare->shorten(key_at(plan.page, plan.head, split - 1), right, plan.separator.image);
  uint32_t left = align8(bytes);
  for (uint32_t i = 0; i < split; ++i) left += space_at(plan, i);
  if (bytes >= kKeyMin && left <= kNodeSpace) {
    VERIFY(bytes <= kKeyMax);
    plan.separator.bytes = bytes;
    make_pivot(plan.separator.image);  // blink.pivot-tid-minus-infinity
  } else {
    plan.separator.set(right);
  }
}

void fill_halves(Plan& plan, uint32_t split) {
  plan.left.begin(plan.head);
  plan.right.begin(plan.head);
  for (uint32_t i = 0; i < plan.head.count; ++i) {
    PageImage& half = i < split ? plan.left : plan.right;
    const auto key = key_at(plan.page, plan.head, i);
    if (plan.head.leaf())
      half.append(key);
    else
      half.append(child_at(plan.page, plan.head, i), key);
  }
  plan.left.set_high(plan.separator.span());
  if (plan.head.special.has_right()) plan.right.set_high(high_of(plan.page, plan.head));
}

// The transactions that may hold a page that is split: of a leaf, those that get the same of the new page (hold_part);
// of an inner page, those that have read it when it was the root, and a leaf.
Others others_of(const Head& head) { return head.leaf() ? Others::kOfOtherParts : Others::kChecked; }

// (1), with the new page `fresh`.  False: the page changed since the plan was made.
Result<bool> split_page(const Ground& g, PageId id, Plan& plan, PageId fresh) {
  MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(log_space(3)));
  auto page = g.pool->fix_exclusive(*g.session, id, others_of(plan.head));
  if (!page) return page.error();
  if (page->header().version != plan.head.version) return false;
  g.session->next_wait(WaitOrder::kNew);
  auto sibling = g.pool->fix_exclusive(*g.session, fresh);
  if (!sibling) return sibling.error();
  ExclusiveGuard old_sibling;
  const PageId old_right = plan.head.special.right;
  if (old_right.valid()) {
    // A transaction that holds that page has read its entries, not where its left neighbour is.
    g.session->next_wait(WaitOrder::kRight);
    auto guard = g.pool->fix_exclusive(*g.session, old_right, Others::kChecked);
    if (!guard) return guard.error();
    old_sibling = guard.take();
  }
  if (plan.head.leaf()) GCL_TRY(g.session->hold_part(id, *sibling));  // serializable.parts-are-held
  plan.left.special().right = fresh;
  plan.left.special().flags |= kIncompleteSplit;
  plan.right.special().left = id;
  plan.right.special().gate = 0;
  change.join(*page);
  change.join(*sibling);
  plan.left.write_to(change, *page, g.relation(), false);
  plan.right.write_to(change, *sibling, g.relation(), true);
  if (old_sibling) {
    change.join(old_sibling);
    change.set(old_sibling, kSpecialAt + offsetof(Special, left), fresh);
  }
  change.commit();
  return true;
}

// The root's number never changes: a full root gives all it has to a new only child, and grows a level.
Result<bool> push_down(const Ground& g, Plan& plan, PageId fresh) {
  MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(log_space(2)));
  // The child comes first: it lies below (upwards order), though no page names it yet.
  auto child = g.pool->fix_exclusive(*g.session, fresh);
  if (!child) return child.error();
  g.session->next_wait(WaitOrder::kNew);
  auto root = g.pool->fix_exclusive(*g.session, g.root, others_of(plan.head));
  if (!root) return root.error();
  if (root->header().version != plan.head.version) return false;
  if (plan.head.leaf()) GCL_TRY(g.session->hold_part(g.root, *child));
  change.join(*child);
  change.join(*root);
  plan.left.begin(plan.head);
  for (uint32_t i = 0; i < plan.head.count; ++i) {
    const auto key = key_at(plan.page, plan.head, i);
    if (plan.head.leaf())
      plan.left.append(key);
    else
      plan.left.append(child_at(plan.page, plan.head, i), key);
  }
  plan.left.write_to(change, *child, g.relation(), true);
  plan.right.begin(uint16_t(plan.head.special.level + 1));
  plan.right.append(fresh, {});  // blink.first-key-minus-infinity
  plan.right.write_to(change, *root, g.relation(), true);
  change.commit();
  return true;
}

// Takes a page for the plan and gives it back if the plan came to nothing.
Status carry_out(const Ground& g, PageId id, Plan& plan, bool is_root, bool& done) {
  auto fresh = g.pool->allocate(*g.session, 1);
  if (!fresh) return fresh.error();
  auto split = is_root ? push_down(g, plan, *fresh) : split_page(g, id, plan, *fresh);
  done = split && *split;
  if (done) return {};
  const Status freed = g.pool->free(*g.session, *fresh, 1);
  return split ? freed : split.error();
}

enum class Linked : uint8_t { kDone, kElsewhere, kFull };

// (2), if `parent` still has the downlink of `left`.  kFull: learns the parent's version and the place.  A transaction
// that holds one of them has read entries: of a leaf, which stay; of the root, when it was a leaf.
Result<Linked> link_sibling(const Ground& g, PageId left, PageId parent, uint64_t& version, uint32_t& index) {
  MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(log_space(1) + 256));
  auto page = g.pool->fix_exclusive(*g.session, left, Others::kChecked);
  if (!page) return page.error();
  const Head head = head_of(*page);
  if (!head.incomplete()) return Linked::kDone;
  g.session->next_wait(WaitOrder::kUp);
  auto above = g.pool->fix_exclusive(*g.session, parent, Others::kChecked);
  if (!above) return above.error();
  const Head up = head_of(*above);
  if (up.special.level != head.special.level + 1 || up.gone()) return Linked::kElsewhere;
  index = index_of_child(above->bytes(), up, left) + 1;
  if (index > up.count) return Linked::kElsewhere;
  const EntryImage pivot = EntryImage::pivot(head.special.right, high_of(page->bytes(), head));
  version = up.version;
  if (!has_room(up, pivot.bytes)) return Linked::kFull;
  change.join(*page);
  change.join(*above);
  put_entry(change, *above, up, index, pivot);
  change.set(*page, kSpecialAt + offsetof(Special, flags), uint16_t(head.special.flags & ~kIncompleteSplit));
  change.commit();
  return Linked::kDone;
}

}  // namespace

Status split_in_two(const Ground& ground, PageId id, uint64_t version, uint32_t index, Comparator* compare,
                    bool& done) {
  Plan plan;
  done = false;
  GCL_TRY(ground.pool->copy_page(*ground.session, id, plan.page));
  if (!read_head(Source::plain(plan.page), plan.head)) return Errc::kCorrupt;
  if (plan.head.version != version || plan.head.incomplete() || plan.head.gone()) return {};
  const bool is_root = id == ground.root;
  if (!is_root) {
    const uint32_t split = choose_split(plan.page, plan.head, index, ground.fill, compare);
    choose_separator(plan, split, compare);
    fill_halves(plan, split);
  }
  return carry_out(ground, id, plan, is_root, done);
}

Status make_room(const Ground& ground, PageId id, uint64_t version, uint32_t index, Comparator* compare,
                 const Path& path) {
  bool done;
  GCL_TRY(split_in_two(ground, id, version, index, compare, done));
  if (id == ground.root) return {};
  if (done) stop_at(*ground.session, StopPoint::kBlinkSplitUnlinked);
  return complete_split(ground, id, path);
}

Status parent_of_incomplete(const Ground& ground, PageId left, const Head& seen, const Path& path, PageId& parent) {
  GCL_TRY(find_parent(ground, left, uint16_t(seen.special.level + 1), path, parent));
  if (parent.valid()) return {};
  PageReader reader;
  Head now;
  GCL_TRY(read_whole_head(*ground.pool, *ground.session, left, reader, now));
  return now.version == seen.version ? Errc::kCorrupt : Errc::kOk;
}

Status complete_split(const Ground& ground, PageId left, const Path& path) {
  for (;;) {
    PageReader reader;
    Head head;
    GCL_TRY(reader.at(*ground.pool, *ground.session, left));
    const bool sane = read_head(reader.source(), head);
    if (!reader.source().validate()) continue;
    if (!sane || head.special.level + 1 >= kLevelsMax) return Errc::kCorrupt;
    if (!head.incomplete()) return {};
    PageId parent;
    GCL_TRY(parent_of_incomplete(ground, left, head, path, parent));
    if (!parent.valid()) continue;
    uint64_t version = 0;
    uint32_t index = 0;
    auto linked = link_sibling(ground, left, parent, version, index);
    if (!linked) return linked.error();
    if (*linked == Linked::kDone) return {};
    if (*linked == Linked::kFull) GCL_TRY(make_room(ground, parent, version, index, nullptr, path));
  }
}

}  // namespace engine::blink
