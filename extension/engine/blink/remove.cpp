// VACUUM's part: leaves are read into private memory, the caller judges tids there, and then the page loses the entries
// it condemned, whatever else happened to it: a tid once dead stays dead until the caller frees it.  Leaves that are
// empty then leave the tree (unlink.hpp).
#include <algorithm>

#include "extension/engine/blink/image.hpp"
#include "extension/engine/blink/search.hpp"
#include "extension/engine/blink/tree.hpp"
#include "extension/engine/blink/unlink.hpp"

namespace engine::blink {
namespace {

// The tids of one leaf that are to go.  Plain data.
struct Dead {
  uint32_t count = 0;
  Tid tid[kPerPageMax];
  bool has(Tid t) const { return std::binary_search(tid, tid + count, t); }
};

struct Erased {
  uint32_t gone, kept;
  PageId right;  // the page may have been split since it was read: its sibling then is the one to read next
};

Result<Erased> erase(BufferPool& pool, Session& session, PageId id, uint32_t relation, const Dead& dead) {
  bufmgr::MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(log_space(1)));
  auto page = pool.fix_exclusive(session, id);
  if (!page) return page.error();
  Head head;
  VERIFY(read_head(Source::plain(page->bytes()), head));
  if (!head.leaf()) return Errc::kRestart;  // it was the root, and has grown
  PageImage image;
  image.begin(head);
  for (uint32_t i = 0; i < head.count; ++i) {
    const auto key = key_at(page->bytes(), head, i);
    if (!dead.has(load_tid(key.data()))) image.append(key);
  }
  const Erased result{uint32_t(head.count - image.count()), image.count(), head.special.right};
  if (result.gone == 0) return result;
  if (head.special.has_right()) image.set_high(high_of(page->bytes(), head));
  change.join(*page);
  image.write_to(change, *page, relation, false);
  change.commit();
  return result;
}

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
      GCL_TRY(unlink_branch(ground, page, result.deleted));
      page = head.special.right;
      continue;
    }
    Dead dead;
    for (uint32_t i = 0; head.leaf() && i < head.count; ++i) {
      const Tid tid = load_tid(key_at(bytes, head, i).data());
      if (condemned(tid)) dead.tid[dead.count++] = tid;
    }
    std::sort(dead.tid, dead.tid + dead.count);
    Erased erased{0, uint32_t(head.count - dead.count), head.special.right};
    bool grown = !head.leaf();
    if (!grown && dead.count > 0) {
      auto done = erase(*pool_, session, page, uint32_t(meta_.number()), dead);
      if (!done && done.error() != Errc::kRestart) return done.error();
      grown = !done;
      if (done) erased = *done;
    }
    if (grown) {  // only ever happens to the first leaf: nothing was counted
      GCL_TRY(first_of_level(*pool_, session, root_, 0, page));
      continue;
    }
    result.removed += erased.gone;
    result.kept += erased.kept;
    result.leaves += 1;
    if (erased.kept == 0 && erased.right.valid()) GCL_TRY(delete_leaf(ground, page, parents, result.deleted));
    page = erased.right;
  }
  return result;
}

}  // namespace engine::blink
