// A tree's life, and what reads it whole.
#include "extension/engine/blink/tree.hpp"

#include <type_traits>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/blink/image.hpp"
#include "extension/engine/blink/meta.hpp"
#include "extension/engine/blink/search.hpp"

namespace engine::blink {
namespace {

static_assert(std::is_trivially_destructible_v<Tree> && std::is_trivially_destructible_v<Look>);  // I-B1

constexpr int kShapeTriesMax = 8;

Status make_pages(BufferPool& pool, Session& session, PageId meta, PageId root) {
  bufmgr::MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(log_space(2)));
  auto meta_page = pool.fix_exclusive(session, meta);
  if (!meta_page) return meta_page.error();
  session.next_wait(bufmgr::WaitOrder::kNew);
  auto root_page = pool.fix_exclusive(session, root);
  if (!root_page) return root_page.error();
  const uint32_t relation = uint32_t(meta.number());
  change.join(*meta_page);
  change.join(*root_page);
  change.format(*meta_page, PageType::kBlinkMeta, relation);
  change.set(*meta_page, kPageBody, Meta{.root = root});
  PageImage empty;
  empty.begin(0);
  empty.write_to(change, *root_page, relation, true);
  change.commit();
  return {};
}

// The bin's pages, then the bin.
Status drop_bin(BufferPool& pool, Session& session, PageId page, Meta& meta) {
  if (!meta.bin.valid()) return {};
  for (;;) {
    Bin bin;
    GCL_TRY(read_bin(pool, session, meta.bin, bin));
    if (!bin.fresh.valid() && !bin.waiting.valid()) break;
    GCL_TRY(free_first(pool, session, meta.bin, bin.fresh.valid() ? &Bin::fresh : &Bin::waiting));
  }
  const PageId bin = std::exchange(meta.bin, {});
  GCL_TRY(write_meta(pool, session, page, meta));
  return pool.free(session, bin, 1);
}

}  // namespace

Result<PageId> Tree::create(BufferPool& pool, Session& session) {
  auto meta = pool.allocate(session, 1, bufmgr::PageUse::kHousekeeping);
  if (!meta) return meta.error();
  auto root = pool.allocate(session, 1, bufmgr::PageUse::kHousekeeping);
  Status made = root ? make_pages(pool, session, *meta, *root) : Status(root.error());
  if (made) return *meta;
  if (root) (void)pool.free(session, *root, 1);
  (void)pool.free(session, *meta, 1);
  return made.error();
}

Result<Tree> Tree::open(BufferPool& pool, Session& session, PageId meta) {
  Meta content;
  GCL_TRY(read_meta(pool, session, meta, content));
  return Tree(pool, meta, content.root);
}

// Level by level along the right links, so that pages without a downlink yet are found.  The meta page remembers how
// far it came: a page is forgotten there before it is freed, so that an interruption costs a page at most.
Status Tree::drop(BufferPool& pool, Session& session, PageId meta) {
  Meta content;
  GCL_TRY(read_meta(pool, session, meta, content));
  GCL_TRY(drop_bin(pool, session, meta, content));
  if (content.dropping == 0) {
    content.dropping = 1;
    content.drop_next = {};
    content.drop_below = content.root;
  }
  alignas(8) std::byte bytes[kPageSize];
  for (;;) {
    const bool first = !content.drop_next.valid();
    const PageId page = first ? content.drop_below : content.drop_next;
    if (!page.valid()) return pool.free(session, meta, 1);
    GCL_TRY(pool.copy_page(session, page, bytes));
    Head head;
    if (!read_head(Source::plain(bytes), head)) return Errc::kCorrupt;
    if (first) {
      content.drop_below = {};
      if (!head.leaf()) {
        content.drop_below = child_at(bytes, head, 0);
        GCL_TRY(
            first_of_level(pool, session, content.drop_below, uint16_t(head.special.level - 1), content.drop_below));
      }
    }
    content.drop_next = head.special.right;
    GCL_TRY(write_meta(pool, session, meta, content));
    GCL_TRY(pool.free(session, page, 1));
  }
}

Result<uint64_t> Tree::count(Session& session) {
  Look look;
  Head head;
  for (;;) {
    PageId page;
    GCL_TRY(leftmost(*pool_, session, root_, 0, page));
    uint64_t entries = 0;
    while (page.valid()) {
      GCL_TRY(read_whole_head(*pool_, session, page, look, head));
      if (!head.leaf()) break;  // it was the root, and has grown
      entries += head.count;
      page = head.special.right;
    }
    if (!page.valid()) return entries;
  }
}

// Everybody who might come to a page of the second list counts with at most its moment.
Result<RecycleResult> Tree::recycle(Session& session, Horizon& horizon) {
  const Ground ground{pool_, &session, meta_, root_};
  RecycleResult result;
  Meta meta;
  GCL_TRY(read_meta(*pool_, session, meta_, meta));
  if (!meta.bin.valid()) return result;
  for (;;) {
    if (session.interrupted()) return Errc::kInterrupted;
    Bin bin;
    GCL_TRY(read_bin(*pool_, session, meta.bin, bin));
    result.waiting = bin.pages;
    if (!bin.waiting.valid()) {
      if (!bin.fresh.valid()) return result;
      auto moment = horizon.pass_moment();
      if (!moment) return moment.error();
      GCL_TRY(turn_bin(ground, meta.bin, *moment));
      continue;
    }
    auto now = horizon.now();
    if (!now) return now.error();
    if (*now <= bin.moment) return result;
    for (; bin.waiting.valid(); ++result.freed) {
      GCL_TRY(free_first(*pool_, session, meta.bin, &Bin::waiting));
      GCL_TRY(read_bin(*pool_, session, meta.bin, bin));
    }
  }
}

// A level's pages are the entries of the level above; a page without a downlink is not counted.
Result<uint64_t> Tree::pages(Session& session) {
  Look look;
  Head head;
  uint64_t counted = 2;  // the meta page and the root
  uint16_t level = 0;
  Meta meta;
  GCL_TRY(read_meta(*pool_, session, meta_, meta));
  if (meta.bin.valid()) {
    Bin bin;
    GCL_TRY(read_bin(*pool_, session, meta.bin, bin));
    counted += 1 + bin.pages;
  }
  for (PageId page = root_; page.valid();) {
    GCL_TRY(read_whole_head(*pool_, session, page, look, head));
    level = head.special.level;
    if (level == 0) return counted;
    counted += head.count;
    page = head.special.right;
    if (!page.valid() && level > 1) GCL_TRY(leftmost(*pool_, session, root_, uint16_t(level - 1), page));
  }
  return counted;
}

// The planner does not count for the horizon: what a downlink leads to may be anything by then.
Result<Shape> Tree::shape(Session& session) {
  Look look;
  Head head;
  for (int tries = 0;; ++tries) {
    Shape shape;
    uint64_t on_level = 1;
    PageId page = root_;
    int level = kLevelsMax;
    for (;;) {
      GCL_TRY(look.at(*pool_, session, page));
      PageId child;
      bool sane = read_head(look.source(), head) && head.special.level < level;
      if (sane && !head.leaf()) sane = read_child(look.source(), head, head.count / 2, child);
      if (!look.source().validate()) {
        look.failed();
        continue;
      }
      if (!sane) break;
      level = head.special.level;
      if (page == root_) shape.height = head.special.level;
      shape.pages += on_level;
      if (head.leaf()) return shape;
      on_level *= head.count;
      page = child;
    }
    if (page == root_) return Errc::kCorrupt;
    if (tries == kShapeTriesMax) return shape;
  }
}

}  // namespace engine::blink
