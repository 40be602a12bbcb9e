// Two neighbours of a level, as they were at one moment (check.pairs-of-one-moment).
#include "extension/engine/blink/search.hpp"
#include "extension/engine/check/tree_check.hpp"

namespace engine {

using blink::Head;

Status TreeCheck::copy(PageId id, const FindingPlace& from, NodeCopy& to, bool* there, Findings& findings) {
  to.id = id;
  to.headed = to.sound = false;
  GCL_TRY(copy_named(txns_, id, from, to.bytes, there, findings));
  if (*there) check_node(to, relation(), keys_, findings);
  return {};
}

Result<uint64_t> TreeCheck::version_of(PageId page) {
  for (;;) {
    if (session().interrupted()) return Errc::kInterrupted;
    auto look = pool().fix_optimistic(session(), page);
    if (!look) return look.error();
    const auto version = look->get<uint64_t>(offsetof(PageHeader, version));
    if (look->validate()) return version;
  }
}

// Brings right_ to the right sibling of current_.  False: one of them changed each time.  Nothing is on the right
// (`there`): that was told, or current_ has become useless.
Result<bool> TreeCheck::copy_right(Findings& findings, bool* there) {
  for (int tries = 0; tries < kTries; ++tries) {
    const PageId id = current_.id;
    GCL_TRY(copy(current_.head.special.right, current_.at(), right_, there, findings));
    if (!*there) return true;
    auto now = version_of(id);
    if (!now) return now.error();
    if (*now == current_.head.version) return true;
    GCL_TRY(copy(id, current_.at(), current_, there, findings));
    *there = current_.headed && current_.head.special.has_right();
    if (!*there) return true;
  }
  return false;
}

// The same under shared guards of both: from left to right (blink.latch-up-then-right).
Result<bool> TreeCheck::latch_right(Findings& findings, bool* there) {
  const auto kept = [](const bufmgr::SharedGuard& guard, NodeCopy& to) {
    to.id = guard.id();
    to.headed = to.sound = false;
    std::memcpy(to.bytes, guard.bytes(), coherence::kPageSize);
  };
  {
    auto left = pool().fix_shared(session(), current_.id);
    if (!left) return left.error() == Errc::kHeld ? Result<bool>(false) : left.error();
    kept(*left, current_);
    if (!blink::read_head(blink::Source::plain(current_.bytes), current_.head)) return Errc::kCorrupt;
    session().next_wait(bufmgr::WaitOrder::kRight);
    auto right = pool().fix_shared(session(), current_.head.special.right);
    if (!right) return right.error() == Errc::kHeld ? Result<bool>(false) : right.error();
    kept(*right, right_);
  }
  check_node(current_, relation(), keys_, findings);
  check_node(right_, relation(), keys_, findings);
  *there = current_.headed;
  return true;
}

// check.siblings-agree.  current_ and right_ are of one moment, and right_ is what current_'s right link names.
void TreeCheck::check_siblings(Findings& findings) {
  const Head& left = current_.head;
  const Head& right = right_.head;
  if (left.deleted() || !right_.headed) return;  // a link of a page that has left says only where to go on
  if (right.special.level != left.special.level)
    findings.add(right_.at(), "page is of level %u, but its left sibling of level %u", unsigned(right.special.level),
                 unsigned(left.special.level));
  if (right.deleted()) {
    findings.add(current_.at(), "right link leads to a page that has left the tree");
    return;
  }
  if (right.special.left != current_.id)
    findings.add(right_.at(), "left link does not name the page whose right link leads here");
  if (!current_.sound || !right_.sound) return;
  if (right.special.has_right() && order_of_keys(keys_, current_.high(), right_.high()) >= 0)
    findings.add(right_.at(), "high key is not behind that of the left sibling");
  if (left.gone()) return;  // its range is the right sibling's, too (blink.deleted-covers-nothing)
  const uint32_t first = right.leaf() ? 0 : 1;
  if (first < right.count && order_of_keys(keys_, right_.key(first), current_.high()) < 0)
    findings.add(right_.at(first), "cross page item order invariant violated: entry is below the page's low key");
}

}  // namespace engine
