// VACUUM's part: leaves are read into private memory, the caller judges tids there, and then the page loses the entries
// that were judged dead, whatever else happened to it: a tid once dead stays dead until the caller frees it.  Leaves
// that are empty then leave the tree (page_deletion.hpp).
#include "extension/engine/blink/erase.hpp"
#include "extension/engine/blink/page_deletion.hpp"
#include "extension/engine/blink/search.hpp"
#include "extension/engine/blink/tree.hpp"

namespace engine::blink {
namespace {

// A page that a transaction holds stays in the tree, or half-dead, until the next VACUUM
// (serializable.housekeeping-skips).
Status unless_held(Status status) { return status.error() == Errc::kHeld ? Status{} : status; }

}  // namespace

Result<RemoveResult> Tree::remove_if(Session& session, TidPredicate& condemned) {
  const Ground ground{pool_, &session, meta_, root_};
  RemoveResult result;
  Path parents;  // of the leaves so far
  alignas(8) std::byte bytes[kPageSize];
  PageId page;
  GCL_TRY(first_of_level(*pool_, session, root_, 0, page));
  while (page.valid()) {
    if (session.interrupted()) return Errc::kInterrupted;
    GCL_TRY(pool_->copy_page(session, page, bytes));
    Head head;
    if (!read_head(Source::plain(bytes), head)) return Errc::kCorrupt;
    if (head.gone()) {  // a VACUUM that was stopped left it like this
      GCL_TRY(unless_held(delete_branch(ground, page, result.deleted)));
      page = head.special.right;
      continue;
    }
    DeadEntries dead;
    dead.begin(page, head.version);
    for (uint32_t i = 0; head.leaf() && i < head.count; ++i) {
      const Tid tid = load_tid(key_at(bytes, head, i).data());
      if (condemned(tid)) dead.add(tid);
    }
    Erased erased{0, uint32_t(head.count - dead.count), head.special.right};
    bool grown = !head.leaf();
    if (!grown && dead.count > 0) {
      auto done = erase(ground, dead);
      const bool held = !done && done.error() == Errc::kHeld;
      if (!done && !held && done.error() != Errc::kRestart) return done.error();
      grown = !done && !held;
      if (done) erased = *done;
      if (held) erased.kept = head.count;
      result.skipped |= held;
    }
    if (grown) {  // only ever happens to the first leaf: nothing was counted
      GCL_TRY(first_of_level(*pool_, session, root_, 0, page));
      continue;
    }
    result.removed += erased.gone;
    result.kept += erased.kept;
    result.leaves += 1;
    if (erased.kept == 0 && erased.right.valid())
      GCL_TRY(unless_held(delete_leaf(ground, page, parents, result.deleted)));
    page = erased.right;
  }
  return result;
}

}  // namespace engine::blink
