#include "extension/engine/reclaim/reclaim_list.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "bufmgr/space/space_note.hpp"
#include "extension/engine/reclaim/reclaim_page.hpp"

namespace engine {

using bufmgr::ExclusiveGuard;
using bufmgr::MiniTransaction;
using bufmgr::PageType;
using coherence::Batch;

namespace {

const ReclaimPage& list_page(const ExclusiveGuard& guard) {
  return *reinterpret_cast<const ReclaimPage*>(guard.bytes());
}

// The first free place from `i` on; kRecords: none.
uint32_t free_place(const ReclaimPage& page, uint32_t i = 0) {
  while (i < ReclaimPage::kRecords && page.record[i].word != 0) ++i;
  return i;
}

bool takes_records(const ReclaimPage& page, NodeId node) {
  return is_list_of(page, node) && page.closed == 0 && free_place(page) < ReclaimPage::kRecords;
}

}  // namespace

// The record of a page that is being allocated.
class ReclaimNote final : public bufmgr::SpaceNote {
 public:
  ReclaimNote(TxnSystem& txns, PageId list, TxnId by, ReclaimKind kind)
      : txns_(txns), list_(list), by_(by), kind_(kind) {}
  uint32_t log_bytes() const override { return 64; }
  Status open(PageId first) override {
    record_ = ReclaimRecord::of(by_, kind_, ReclaimWhat::kMade, first);
    txns_.session().next_wait(bufmgr::WaitOrder::kNote);
    auto guard = txns_.pool().fix_exclusive(txns_.session(), list_);
    if (!guard) return guard.error();
    if (!takes_records(list_page(*guard), txns_.node())) return Errc::kRestart;
    guard_ = guard.take();
    return {};
  }
  void write(MiniTransaction& change) override {
    change.join(guard_);
    change.set(guard_, record_at(free_place(list_page(guard_))), record_);
  }

 private:
  TxnSystem& txns_;
  PageId list_;
  TxnId by_;
  ReclaimKind kind_;
  ReclaimRecord record_;
  ExclusiveGuard guard_;
};

// A fresh page becomes the newest behind the root; or, without a root, a root that is not linked yet.
class GrowNote final : public bufmgr::SpaceNote {
 public:
  GrowNote(TxnSystem& txns, PageId root, uint64_t next) : txns_(txns), root_id_(root), next_(next) {}
  uint32_t log_bytes() const override { return 256; }
  Status open(PageId first) override {
    ExclusiveGuard root;
    if (root_id_.valid()) {
      txns_.session().next_wait(bufmgr::WaitOrder::kNote);
      auto guard = txns_.pool().fix_exclusive(txns_.session(), root_id_);
      if (!guard) return guard.error();
      if (list_page(*guard).next != next_) return Errc::kRestart;
      root = guard.take();
    }
    txns_.session().next_wait(bufmgr::WaitOrder::kNew);
    auto fresh = txns_.pool().fix_exclusive(txns_.session(), first);
    if (!fresh) return fresh.error();
    root_ = std::move(root);
    fresh_ = fresh.take();
    return {};
  }
  void write(MiniTransaction& change) override {
    change.join(fresh_);
    change.format(fresh_, PageType::kReclaim, 0);
    change.set(fresh_, offsetof(ReclaimPage, next), next_);
    change.set(fresh_, offsetof(ReclaimPage, node), uint32_t{txns_.node().value});
    if (!root_) return;
    change.join(root_);
    change.set(root_, offsetof(ReclaimPage, next), link_to(fresh_.id()));
  }

 private:
  TxnSystem& txns_;
  PageId root_id_;
  uint64_t next_;
  ExclusiveGuard root_, fresh_;
};

// The session that needs it first makes it; two may, and one of the pages goes back.
Result<PageId> ReclaimList::root() {
  auto& pool = txns_.pool();
  auto& session = txns_.session();
  const auto word = txns_.words().reclaim_root(txns_.node());
  const auto known = pool.memory(session).load(word);
  if (!known) return known.error();
  if (*known != 0) return linked_page(*known);
  auto page = [&] {
    GrowNote note(txns_, PageId{}, 0);
    return pool.allocate(session, 1, bufmgr::PageUse::kHousekeeping, &note);
  }();
  if (!page) return page;
  Batch batch(word.node());
  const int cas = batch.cas(word, 0, link_to(*page));
  GCL_TRY(pool.memory(session).run(batch));
  if (batch.cas_succeeded(cas)) return *page;
  GCL_TRY(pool.free(session, *page, 1));
  return linked_page(batch.op(cas).old);
}

Result<bool> ReclaimList::has_room(PageId page, uint64_t* next) {
  alignas(8) std::byte copy[coherence::kPageSize];
  GCL_TRY(txns_.pool().copy_page(txns_.session(), page, copy));
  const auto& list = *reinterpret_cast<const ReclaimPage*>(copy);
  if (next != nullptr) *next = list.next;
  return takes_records(list, txns_.node());
}

// The root, or the newest page behind it.
Result<PageId> ReclaimList::page_with_room() {
  for (;;) {
    auto first = root();
    if (!first) return first;
    uint64_t next = 0;
    auto room = has_room(*first, &next);
    if (!room) return room.error();
    if (*room) return first;
    if (next != 0) {
      room = has_room(linked_page(next), nullptr);
      if (!room) return room.error();
      if (*room) return linked_page(next);
    }
    GrowNote note(txns_, *first, next);
    auto grown = txns_.pool().allocate(txns_.session(), 1, bufmgr::PageUse::kHousekeeping, &note);
    if (grown || grown.error() != Errc::kRestart) return grown;  // kRestart: another session was faster
  }
}

Result<PageId> ReclaimList::allocate(TxnId by, ReclaimKind kind, bufmgr::PageUse use) {
  for (;;) {
    auto list = page_with_room();
    if (!list) return list;
    ReclaimNote note(txns_, *list, by, kind);
    auto page = txns_.pool().allocate(txns_.session(), 1, use, &note);
    if (page || page.error() != Errc::kRestart) return page;
  }
}

Status ReclaimList::add(TxnId by, std::span<const Dropped>& dropped) {
  constexpr size_t kAtOnce = 32;  // ranges of a mini-transaction
  while (!dropped.empty()) {
    auto list = page_with_room();
    if (!list) return list.error();
    const size_t count = std::min(dropped.size(), kAtOnce);
    MiniTransaction change(txns_.pool(), txns_.session());
    GCL_TRY(change.reserve(uint32_t(count * (sizeof(ReclaimRecord) + 16))));
    auto guard = txns_.pool().fix_exclusive(txns_.session(), *list);
    if (!guard) return guard.error();
    if (!takes_records(list_page(*guard), txns_.node())) continue;
    change.join(*guard);
    size_t written = 0;
    for (uint32_t i = 0; written < count; ++written) {
      i = free_place(list_page(*guard), i);
      if (i == ReclaimPage::kRecords) break;
      const auto& [kind, page] = dropped[written];
      change.set(*guard, record_at(i), ReclaimRecord::of(by, kind, ReclaimWhat::kDropped, page));
    }
    change.commit();
    dropped = dropped.subspan(written);
  }
  return {};
}

}  // namespace engine
