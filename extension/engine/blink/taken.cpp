#include "extension/engine/blink/taken.hpp"

namespace engine::blink {
namespace {

using bufmgr::PageNote;
using bufmgr::WaitOrder;

constexpr uint32_t kMetaTakenAt = kPageBody + offsetof(Meta, taken);

// The fresh page becomes the list that the meta page names.
class ListNote final : public bufmgr::SpaceNote {
 public:
  ListNote(const Ground& ground, PageId older) : ground_(ground), older_(older) {}
  uint32_t log_bytes() const override { return 256; }
  Status open(PageId first) override {
    auto& pool = *ground_.pool;
    ground_.session->next_wait(WaitOrder::kNote);
    auto meta = pool.fix_exclusive(*ground_.session, ground_.meta);
    if (!meta) return meta.error();
    ground_.session->next_wait(WaitOrder::kNew);
    auto list = pool.fix_exclusive(*ground_.session, first);
    if (!list) return list.error();
    meta_ = meta.take();
    list_ = list.take();
    return {};
  }
  void write(bufmgr::MiniTransaction& change) override {
    change.join(meta_);
    change.join(list_);
    change.format(list_, PageType::kBlinkMeta, ground_.relation());
    change.set(list_, kPageBody + offsetof(Taken, magic), Taken::kMagic);
    change.set(list_, kPageBody + offsetof(Taken, older), older_);
    change.set(meta_, kMetaTakenAt, list_.id());
  }

 private:
  const Ground& ground_;
  PageId older_;
  bufmgr::ExclusiveGuard meta_, list_;
};

class EntryNote final : public bufmgr::SpaceNote {
 public:
  EntryNote(const Ground& ground, PageId list, uint64_t i, uint64_t pages)
      : ground_(ground), list_(list), i_(i), entry_{{}, pages} {}
  uint32_t log_bytes() const override { return 64; }
  Status open(PageId first) override {
    entry_.first = first;
    ground_.session->next_wait(WaitOrder::kNote);
    auto guard = ground_.pool->fix_exclusive(*ground_.session, list_);
    if (!guard) return guard.error();
    guard_ = guard.take();
    return {};
  }
  void write(bufmgr::MiniTransaction& change) override {
    change.join(guard_);
    change.set(guard_, taken_at(i_), entry_);
    change.set(guard_, kPageBody + offsetof(Taken, count), i_ + 1);
  }

 private:
  const Ground& ground_;
  PageId list_;
  uint64_t i_;
  Taken::Entry entry_;
  bufmgr::ExclusiveGuard guard_;
};

Status drop_entry(BufferPool& pool, Session& session, PageId list, uint64_t i, const Taken::Entry& entry) {
  if (entry.pages == kExtentPages || entry.pages == 1) {
    PageNote without(pool, session, list, kPageBody + offsetof(Taken, count), i);
    return pool.free(session, entry.first, uint32_t(entry.pages), &without);
  }
  PageNote shorter(pool, session, list, taken_at(i) + offsetof(Taken::Entry, pages), entry.pages - 1);
  return pool.free(session, entry.first + (entry.pages - 1), 1, &shorter);
}

}  // namespace

Result<PageId> add_list(const Ground& ground, PageId older) {
  ListNote note(ground, older);
  return ground.pool->allocate(*ground.session, 1, bufmgr::PageUse::kData, &note);
}

Result<PageId> take_pages(const Ground& ground, PageId list, uint64_t i, uint32_t count) {
  EntryNote note(ground, list, i, count);
  return ground.pool->allocate(*ground.session, count, bufmgr::PageUse::kData, &note);
}

Status give_back(const Ground& ground, PageId list, uint64_t i, const Taken::Entry& entry) {
  VERIFY(entry.pages > 1);
  PageNote shorter(*ground.pool, *ground.session, list, taken_at(i) + offsetof(Taken::Entry, pages), entry.pages - 1);
  return ground.pool->free(*ground.session, entry.first + (entry.pages - 1), 1, &shorter);
}

Status drop_list(BufferPool& pool, Session& session, PageId page, Meta& meta, bool entries) {
  alignas(8) std::byte bytes[kPageSize];
  GCL_TRY(pool.copy_page(session, meta.taken, bytes));
  const auto& header = *reinterpret_cast<const PageHeader*>(bytes);
  const auto& list = *reinterpret_cast<const Taken*>(bytes + kPageBody);
  if (header.type != PageType::kBlinkMeta || list.magic != Taken::kMagic || list.count > Taken::kEntries)
    return Errc::kCorrupt;
  if (entries && list.count > 0)
    return drop_entry(pool, session, meta.taken, list.count - 1, list.entry[list.count - 1]);
  const PageId older = list.older;
  PageNote unlink(pool, session, page, kMetaTakenAt, older);
  GCL_TRY(pool.free(session, meta.taken, 1, &unlink));
  meta.taken = older;
  return {};
}

}  // namespace engine::blink
