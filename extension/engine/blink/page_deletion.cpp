#include "extension/engine/blink/page_deletion.hpp"

#include "extension/engine/blink/image.hpp"
#include "extension/engine/blink/meta.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine::blink {
namespace {

using bufmgr::ExclusiveGuard;
using bufmgr::MiniTransaction;
using bufmgr::WaitOrder;

constexpr uint32_t kFlagsAt = kSpecialAt + offsetof(Special, flags);
constexpr uint32_t kLeftAt = kSpecialAt + offsetof(Special, left);
constexpr uint32_t kRightAt = kSpecialAt + offsetof(Special, right);
constexpr uint32_t kGateAt = kSpecialAt + offsetof(Special, gate);
constexpr uint32_t kGarbageAt = kSpecialAt + offsetof(Special, garbage);

// The pages that leave together, by level.
struct Branch {
  static constexpr int kPagesMax = bufmgr::kMiniPagesMax - 1;
  int pages = 0;
  PageId page[kPagesMax];
  PageId parent;  // of the topmost; invalid: they have to stay for now
};

Status find_branch(const Ground& g, PageId leaf, Path& hint, Branch& branch) {
  alignas(8) std::byte bytes[kPageSize];
  Head head;
  branch.page[branch.pages++] = leaf;
  for (uint16_t level = 1; level < kLevelsMax; ++level) {
    const PageId child = branch.page[branch.pages - 1];
    PageId parent;
    GCL_TRY(find_parent(g, child, level, hint, parent));
    if (!parent.valid()) return {};
    hint.page[level] = parent;
    GCL_TRY(g.pool->copy_page(*g.session, parent, bytes));
    if (!read_head(Source::plain(bytes), head)) return Errc::kCorrupt;
    const uint32_t index = index_of_child(bytes, head, child);
    if (index + 1 < head.count) branch.parent = parent;
    if (index + 1 != head.count || head.count > 1 || parent == g.root) return {};
    if (branch.pages == Branch::kPagesMax) return {};
    branch.page[branch.pages++] = parent;
  }
  return Errc::kCorrupt;
}

// Whether a page under guard is as its place in the branch demands: empty, but for the page below.
bool may_leave(const ExclusiveGuard& page, const Head& head, const Branch& branch, int level) {
  if (head.special.level != level || head.gone() || head.incomplete() || !head.special.has_right()) return false;
  if (level == 0) return head.count == 0;
  return head.count == 1 && child_at(page.bytes(), head, 0) == branch.page[level - 1];
}

// Entry `i` gets the child of the next one, which goes.
void merge_downlinks(MiniTransaction& change, ExclusiveGuard& page, const Head& head, uint32_t i) {
  Link kept, dropped;
  VERIFY(read_link(Source::plain(page.bytes()), head, i, kept));
  VERIFY(read_link(Source::plain(page.bytes()), head, i + 1, dropped));
  change.set(page, kept.offset, child_at(page.bytes(), head, i + 1));
  const uint32_t at = kPageBody + (i + 1) * uint32_t(sizeof(Link));
  change.move(page, at, at + sizeof(Link), head.lower - at - uint32_t(sizeof(Link)));
  change.set(page, offsetof(PageHeader, lower), uint16_t(head.lower - sizeof(Link)));
  change.set(page, kGarbageAt, uint16_t(head.special.garbage + align8(dropped.bytes)));
}

// (1), if all is still as it was when the branch was found.
Result<bool> detach(const Ground& g, const Branch& branch) {
  MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(log_space(1)));
  ExclusiveGuard guard[Branch::kPagesMax + 1];
  Head head[Branch::kPagesMax + 1];
  const int n = branch.pages;
  for (int i = 0; i <= n; ++i) {
    if (i > 0) g.session->next_wait(WaitOrder::kUp);
    auto page = g.pool->fix_exclusive(*g.session, i < n ? branch.page[i] : branch.parent);
    if (!page) return page.error();
    guard[i] = page.take();
    head[i] = head_of(guard[i]);
    if (i < n && !may_leave(guard[i], head[i], branch, i)) return false;
  }
  const Head& up = head[n];
  if (up.special.level != n || up.gone()) return false;
  const uint32_t index = index_of_child(guard[n].bytes(), up, branch.page[n - 1]);
  if (index + 1 >= up.count) return false;
  // Not so if the neighbour is half-dead itself.
  if (child_at(guard[n].bytes(), up, index + 1) != head[n - 1].special.right) return false;
  for (int i = 0; i <= n; ++i) change.join(guard[i]);
  merge_downlinks(change, guard[n], up, index);
  for (int i = 0; i < n; ++i) {
    change.set(guard[i], kFlagsAt, uint16_t(head[i].special.flags | kHalfDead));
    change.set(guard[i], kGateAt, i + 1 < n ? branch.page[i + 1] : PageId{});
  }
  change.commit();
  return true;
}

// (2) for one page.  `below`: the page of the branch that names it; invalid for the leaf.  With `below` latched its
// level is waited for upwards, whatever is held of that level already.
Result<bool> delete_page(const Ground& g, PageId bin, PageId id, PageId left, PageId below) {
  MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(1024));
  ExclusiveGuard below_page, left_page;
  const WaitOrder sideways = below.valid() ? WaitOrder::kUp : WaitOrder::kRight;
  if (below.valid()) {
    auto guard = g.pool->fix_exclusive(*g.session, below);
    if (!guard) return guard.error();
    below_page = guard.take();
    g.session->next_wait(WaitOrder::kUp);
  }
  if (left.valid()) {
    auto guard = g.pool->fix_exclusive(*g.session, left);
    if (!guard) return guard.error();
    left_page = guard.take();
    if (head_of(left_page).special.right != id) return false;  // it was split
    g.session->next_wait(sideways);
  }
  auto page = g.pool->fix_exclusive(*g.session, id);
  if (!page) return page.error();
  const Head head = head_of(*page);
  if (!head.gone() || head.deleted()) return Errc::kCorrupt;
  if (head.special.left != left) return false;
  g.session->next_wait(sideways);
  auto right = g.pool->fix_exclusive(*g.session, head.special.right);
  if (!right) return right.error();
  if (head_of(*right).special.left != id) return Errc::kCorrupt;
  g.session->next_wait(WaitOrder::kUp);
  auto list = g.pool->fix_exclusive(*g.session, bin);
  if (!list) return list.error();
  Bin content;
  std::memcpy(&content, list->bytes() + kPageBody, sizeof content);
  change.join(*page);
  change.join(*right);
  change.join(*list);
  change.set(*right, kLeftAt, left);
  if (left_page) {
    change.join(left_page);
    change.set(left_page, kRightAt, head.special.right);
  }
  if (below_page) {
    change.join(below_page);
    change.set(below_page, kGateAt, PageId{});
  }
  change.set(*page, kFlagsAt, uint16_t(head.special.flags | kDeleted));
  change.set(*page, kGateAt, content.fresh);
  content.fresh = id;
  ++content.pages;
  change.set(*list, kPageBody, content);
  change.commit();
  return true;
}

}  // namespace

Status detach_leaf(const Ground& g, PageId leaf, Path& hint, bool& done) {
  done = false;
  if (leaf == g.root) return {};
  Branch branch;
  GCL_TRY(find_branch(g, leaf, hint, branch));
  if (!branch.parent.valid()) return {};
  auto detached = detach(g, branch);
  if (!detached) return detached.error();
  done = *detached;
  return {};
}

Status delete_branch(const Ground& g, PageId leaf, uint64_t& deleted) {
  PageId bin;
  GCL_TRY(open_bin(g, bin));
  PageId branch[kLevelsMax];
  int pages = 0;
  PageReader reader;
  Head head;
  for (PageId page = leaf; page.valid(); page = PageId{head.special.gate}) {
    if (pages == kLevelsMax) return Errc::kCorrupt;
    GCL_TRY(read_whole_head(*g.pool, *g.session, page, reader, head));
    if (!head.gone() || head.deleted()) return Errc::kCorrupt;
    branch[pages++] = page;
  }
  while (pages-- > 0) {
    for (;;) {
      GCL_TRY(read_whole_head(*g.pool, *g.session, branch[pages], reader, head));
      auto done = delete_page(g, bin, branch[pages], head.special.left, pages > 0 ? branch[pages - 1] : PageId{});
      if (!done) return done.error();
      if (*done) break;
    }
    ++deleted;
  }
  return {};
}

Status delete_leaf(const Ground& g, PageId leaf, Path& hint, uint64_t& deleted) {
  bool done;
  GCL_TRY(detach_leaf(g, leaf, hint, done));
  if (!done) return {};
  stop_at(*g.session, StopPoint::kBlinkPageHalfDead);
  return delete_branch(g, leaf, deleted);
}

}  // namespace engine::blink
