// A page above the leaves and its children, each pair as it was at one moment (check.pairs-of-one-moment).
#include "extension/engine/blink/search.hpp"
#include "extension/engine/blink/split.hpp"
#include "extension/engine/check/tree_check.hpp"

namespace engine {

using blink::Head;

namespace {

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Status TreeCheck::check_children(Findings& findings) {
  int tries = 0;
  PageId last;  // the child checked last
  for (uint32_t i = 0; i < current_.head.count;) {
    if (session().interrupted()) return Errc::kInterrupted;
    bool there, stable;
    child_.id = blink::child_at(current_.bytes, current_.head, i);
    GCL_TRY(copy_named(txns_, child_.id, current_.at(i), child_.bytes, &there, findings));
    if (there) look_at_child();
    auto now = version_of(current_.id);
    if (!now) return now.error();
    stable = *now == current_.head.version;
    if (!stable && ++tries <= kTries) {  // go on behind the last child, where that is now
      GCL_TRY(copy(current_.id, current_.at(), current_, &there, findings));
      if (!current_.sound || current_.head.gone()) return {};
      const uint32_t at = last.valid() ? blink::index_of_child(current_.bytes, current_.head, last) : 0;
      i = last.valid() && at < current_.head.count ? at + 1 : 0;
      continue;
    }
    if (!stable) {
      auto latched = latch_child(&i, findings);
      if (!latched) return latched.error();
      if (!current_.sound || current_.head.gone()) return {};
      counts_.not_compared += !*latched;
      there = stable = *latched;
    }
    if (there && stable) {
      check_child(i, findings);
      GCL_TRY(check_next_child(i, findings));
    }
    last = child_.id;
    ++i;
  }
  return {};
}

// What is wrong with the child alone is told of when its own level is gone through.
void TreeCheck::look_at_child() {
  Findings told;
  check_node(child_, relation(), keys_, told);
}

// Copies child_ and current_ under shared guards of both, from below (blink.latch-up-then-right).  False: the page has
// no such child any more.
Result<bool> TreeCheck::latch_child(uint32_t* i, Findings& findings) {
  {
    auto below = pool().fix_shared(session(), child_.id);
    if (!below) return below.error() == Errc::kHeld ? Result<bool>(false) : below.error();
    session().next_wait(bufmgr::WaitOrder::kUp);
    auto above = pool().fix_shared(session(), current_.id);
    if (!above) return above.error() == Errc::kHeld ? Result<bool>(false) : above.error();
    std::memcpy(child_.bytes, below->bytes(), coherence::kPageSize);
    std::memcpy(current_.bytes, above->bytes(), coherence::kPageSize);
  }
  look_at_child();
  check_node(current_, relation(), keys_, findings);
  if (!current_.sound || current_.head.gone() || current_.head.leaf()) return false;
  const uint32_t at = blink::index_of_child(current_.bytes, current_.head, child_.id);
  const bool has = at < current_.head.count;
  if (has) *i = at;
  return has;
}

// check.downlinks-lead-down, check.children-fill-range.  child_ is what entry `i` of current_ leads to.
void TreeCheck::check_child(uint32_t i, Findings& findings) {
  const Head& up = current_.head;
  const Head& down = child_.head;
  if (!child_.sound) return;
  if (down.special.level + 1 != up.special.level) {
    findings.add(current_.at(i), "downlink leads from level %u to level %u", unsigned(up.special.level),
                 unsigned(down.special.level));
    return;
  }
  if (down.gone()) {
    findings.add(current_.at(i), "downlink leads to a page that has left the tree");
    return;
  }
  const uint32_t first = down.leaf() ? 0 : 1;
  if (i > 0 && first < down.count && order_of_keys(keys_, child_.key(first), current_.key(i)) < 0)
    findings.add(child_.at(first), "down-link lower bound invariant violated: entry is below its page's downlink");
  const bool last = i + 1 == up.count;
  if (last && !up.special.has_right()) {
    if (down.special.has_right() && !down.incomplete())
      findings.add(child_.at(), "last page by its downlink has a right sibling");
    return;
  }
  const auto high = last ? current_.high() : current_.key(i + 1);
  if (!down.special.has_right())
    findings.add(child_.at(), "page has no right sibling, but its parent has a downlink behind it");
  else if (down.incomplete() ? order_of_keys(keys_, child_.high(), high) >= 0 : !same_bytes(child_.high(), high))
    findings.add(child_.at(), "high key is not the key of the next downlink");
}

// (check.pages-have-downlinks) between two children there are only pages that have left their parents, and the right
// half of a split that is not complete.
Status TreeCheck::check_next_child(uint32_t i, Findings& findings) {
  if (!child_.sound || child_.head.gone() || i + 1 == current_.head.count) return {};
  const PageId expected = blink::child_at(current_.bytes, current_.head, i + 1);
  PageId page = child_.head.special.right;
  bool half = child_.head.incomplete();
  bool missing = false;
  blink::PageReader reader;
  for (int steps = 0; page != expected && !missing; ++steps) {
    Head head{};
    missing = steps == kTries || page.raw >> 48 != 0 || !pool().coherence_pool().has(page);
    if (missing) break;
    const Status read = blink::read_whole_head(pool(), session(), page, reader, head);
    if (!read && read.error() != Errc::kCorrupt) return read;
    missing = !read || (!head.gone() && !half);
    if (!missing && !head.gone()) half = false;
    if (!missing) page = head.special.right;
  }
  if (!missing) return {};
  // Only if neither has changed meanwhile.
  for (const NodeCopy* node : {&child_, &current_}) {
    auto now = version_of(node->id);
    if (!now) return now.error();
    if (*now != node->head.version) return {};
  }
  if (page.raw >> 48 != 0 || !pool().coherence_pool().has(page)) return {};  // told of when its level is gone through
  findings.add({.page = page}, "page has no downlink, between two children of page %llu of memory node %u",
               static_cast<unsigned long long>(current_.id.number()), unsigned(current_.id.node().value));
  return {};
}

}  // namespace engine
