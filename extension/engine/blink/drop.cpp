// Freeing a tree, page by page, each together with what the meta page says of the rest (space.noted-in-same-change):
// the process that goes on after an interruption or a crash finds what is left, no more.
#include "extension/engine/blink/search.hpp"
#include "extension/engine/blink/taken.hpp"

namespace engine::blink {
namespace {

using bufmgr::PageNote;

// The bin's pages, then the bin.
Status drop_from_bin(BufferPool& pool, Session& session, PageId page, const Meta& meta) {
  Bin bin;
  GCL_TRY(read_bin(pool, session, meta.bin, bin));
  if (bin.fresh.valid()) return free_first(pool, session, meta.bin, &Bin::fresh);
  if (bin.waiting.valid()) return free_first(pool, session, meta.bin, &Bin::waiting);
  PageNote unlink(pool, session, page, kPageBody + offsetof(Meta, bin), PageId{});
  return pool.free(session, meta.bin, 1, &unlink);
}

// Level by level along the right links, so that pages without a downlink yet are found.
Status drop_node(BufferPool& pool, Session& session, PageId page, Meta meta, bool* none) {
  if (meta.dropping == 0) {
    meta.dropping = 1;
    meta.drop_next = {};
    meta.drop_below = meta.root;
  }
  const bool first = !meta.drop_next.valid();
  const PageId node = first ? meta.drop_below : meta.drop_next;
  *none = !node.valid();
  if (*none) return {};
  alignas(8) std::byte bytes[kPageSize];
  GCL_TRY(pool.copy_page(session, node, bytes));
  Head head;
  if (!read_head(Source::plain(bytes), head)) return Errc::kCorrupt;
  if (first) {
    meta.drop_below = {};
    if (!head.leaf()) {
      meta.drop_below = child_at(bytes, head, 0);
      GCL_TRY(first_of_level(pool, session, meta.drop_below, uint16_t(head.special.level - 1), meta.drop_below));
    }
  }
  meta.drop_next = head.special.right;
  PageNote rest(pool, session, page, kPageBody, meta);
  return pool.free(session, node, 1, &rest);
}

// Whether the page is still as it was allocated.
Result<bool> unmade(BufferPool& pool, Session& session, PageId page) {
  for (;;) {
    auto optimistic = pool.fix_optimistic(session, page);
    if (!optimistic) return optimistic.error();
    const auto type = optimistic->get<PageType>(offsetof(PageHeader, type));
    if (optimistic->validate()) return type == PageType::kUnused;
  }
}

}  // namespace

Result<bool> Tree::drop_some(BufferPool& pool, Session& session, PageId page, bufmgr::SpaceNote* last) {
  auto none = unmade(pool, session, page);
  if (!none) return none;
  if (!*none) {
    Meta meta;
    GCL_TRY(read_meta(pool, session, page, meta));
    if (meta.taken.valid()) {
      GCL_TRY(drop_list(pool, session, page, meta, meta.loaded == 0));
      return false;
    }
    if (meta.bin.valid()) {
      GCL_TRY(drop_from_bin(pool, session, page, meta));
      return false;
    }
    GCL_TRY(drop_node(pool, session, page, meta, &*none));
    if (!*none) return false;
  }
  GCL_TRY(pool.free(session, page, 1, last));
  return true;
}

Status Tree::drop(BufferPool& pool, Session& session, PageId meta) {
  for (;;) {
    auto gone = drop_some(pool, session, meta);
    if (!gone) return gone.error();
    if (*gone) return {};
  }
}

}  // namespace engine::blink
