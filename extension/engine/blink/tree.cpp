// A tree's life, and what reads it whole.
#include "extension/engine/blink/tree.hpp"

#include <type_traits>

#include "bufmgr/space/space_note.hpp"
#include "extension/engine/blink/image.hpp"
#include "extension/engine/blink/meta.hpp"
#include "extension/engine/blink/search.hpp"

namespace engine::blink {
namespace {

// blink.compare-private-memory
static_assert(std::is_trivially_destructible_v<Tree> && std::is_trivially_destructible_v<PageReader>);

constexpr int kShapeTriesMax = 8;

// A fresh root, and the meta page that names it.
class RootNote final : public bufmgr::SpaceNote {
 public:
  RootNote(BufferPool& pool, Session& session, PageId meta) : pool_(pool), session_(session), meta_id_(meta) {}
  uint32_t log_bytes() const override { return log_space(1); }
  Status open(PageId first) override {
    session_.next_wait(bufmgr::WaitOrder::kNote);
    auto meta = pool_.fix_exclusive(session_, meta_id_);
    if (!meta) return meta.error();
    session_.next_wait(bufmgr::WaitOrder::kNew);
    auto root = pool_.fix_exclusive(session_, first);
    if (!root) return root.error();
    meta_ = meta.take();
    root_ = root.take();
    return {};
  }
  void write(bufmgr::MiniTransaction& change) override {
    const auto relation = uint32_t(meta_id_.number());
    change.join(meta_);
    change.join(root_);
    change.format(meta_, PageType::kBlinkMeta, relation);
    change.set(meta_, kPageBody, Meta{.root = root_.id()});
    PageImage empty;
    empty.begin(0);
    empty.write_to(change, root_, relation, true);
  }

 private:
  BufferPool& pool_;
  Session& session_;
  PageId meta_id_;
  bufmgr::ExclusiveGuard meta_, root_;
};

}  // namespace

Result<PageId> Tree::create(BufferPool& pool, Session& session) {
  auto meta = pool.allocate(session, 1, bufmgr::PageUse::kHousekeeping);
  if (!meta) return meta;
  const Status made = create_at(pool, session, *meta);
  if (made) return *meta;
  (void)pool.free(session, *meta, 1);
  return made.error();
}

Status Tree::create_at(BufferPool& pool, Session& session, PageId meta) {
  RootNote note(pool, session, meta);
  auto root = pool.allocate(session, 1, bufmgr::PageUse::kHousekeeping, &note);
  return root ? Status{} : Status{root.error()};
}

Result<Tree> Tree::open(BufferPool& pool, Session& session, PageId meta) {
  Meta content;
  GCL_TRY(read_meta(pool, session, meta, content));
  return Tree(pool, meta, content.root);
}

Result<uint64_t> Tree::count(Session& session) {
  PageReader reader;
  Head head;
  for (;;) {
    PageId page;
    GCL_TRY(leftmost(*pool_, session, root_, 0, page));
    uint64_t entries = 0;
    while (page.valid()) {
      GCL_TRY(read_whole_head(*pool_, session, page, reader, head));
      if (!head.leaf()) break;  // it was the root, and has grown
      entries += head.count;
      page = head.special.right;
    }
    if (!page.valid()) return entries;
  }
}

// A session that might come to a page of the second list counts with at most its moment.
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
      GCL_TRY(advance_bin(ground, meta.bin, *moment));
      continue;
    }
    auto now = horizon.now(bin.moment);
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
  PageReader reader;
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
    GCL_TRY(read_whole_head(*pool_, session, page, reader, head));
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
  PageReader reader;
  Head head;
  for (int tries = 0;; ++tries) {
    Shape shape;
    uint64_t on_level = 1;
    PageId page = root_;
    int level = kLevelsMax;
    for (;;) {
      GCL_TRY(reader.at(*pool_, session, page));
      PageId child;
      bool sane = read_head(reader.source(), head) && head.special.level < level;
      if (sane && !head.leaf()) sane = read_child(reader.source(), head, head.count / 2, child);
      if (!reader.source().validate()) {
        reader.failed();
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
