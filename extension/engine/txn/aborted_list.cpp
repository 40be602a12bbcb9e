// The list of a node's aborted ids that have no word any more.  It lies in pages, which a node's processes have in
// their common cache; a process knows only where each page of it begins (T18).
//
//   head -> page of kEntries sequences -> ...       ascending; entries at or above the count do not count yet
#include <algorithm>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

using bufmgr::MiniTransaction;
using bufmgr::PageType;
using coherence::Batch;

namespace {

constexpr uint32_t kNextAt = bufmgr::kPageBody;  // raw page id + 1 of the next; 0: none
constexpr uint32_t kEntriesAt = kNextAt + 8;
constexpr uint32_t kEntries = (coherence::kPageSize - kEntriesAt) / 8;

constexpr uint32_t entry_at(uint64_t i) { return uint32_t(kEntriesAt + i * 8); }

}  // namespace

// The only page that may have it; null: none.
const TxnSystem::ListPage* TxnSystem::NodeView::page_for(uint64_t sequence) const {
  auto behind = std::upper_bound(pages.begin(), pages.end(), sequence,
                                 [](uint64_t value, const ListPage& page) { return value < page.first; });
  return behind == pages.begin() ? nullptr : &*(behind - 1);
}

// To be validated by the caller.
bool TxnSystem::listed_in(const NodeView& view, const ListPage& page, const bufmgr::OptimisticGuard& look,
                          uint64_t sequence) {
  const auto before = uint64_t(&page - view.pages.data()) * kEntries;
  uint64_t low = 0, high = std::min<uint64_t>(view.aborted - before, kEntries);
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    const auto found = look.get<uint64_t>(entry_at(middle));
    if (found == sequence) return true;
    (found < sequence ? low : high) = found < sequence ? middle + 1 : middle;
  }
  return false;
}

Result<bool> TxnSystem::listed(NodeId node, uint64_t sequence) {
  const NodeView& view = nodes_[node.value];
  const ListPage* page = view.page_for(sequence);
  if (page == nullptr) return false;
  for (;;) {
    auto look = pool_.fix_optimistic(session_, page->page);
    if (!look) return look.error();
    const bool there = listed_in(view, *page, *look, sequence);
    if (look->validate()) return there;
  }
}

// Nullopt: the page is not at hand just now.
std::optional<bool> TxnSystem::known_listed(NodeId node, uint64_t sequence) const {
  const NodeView& view = nodes_[node.value];
  const ListPage* page = view.page_for(sequence);
  if (page == nullptr) return false;
  const bufmgr::OptimisticGuard look = pool_.peek(session_, page->page);
  if (!look) return std::nullopt;
  const bool there = listed_in(view, *page, look, sequence);
  return look.validate() ? std::optional(there) : std::nullopt;
}

// Called by one process of the node at a time, after load_aborted().  Interrupted half-way it has listed ids that the
// count does not cover yet: they do not count, and whoever goes on writes the same entries again.
Status TxnSystem::append_aborted(const std::vector<uint64_t>& sequences) {
  NodeView& view = nodes_[node_.value];
  size_t done = 0;
  while (done < sequences.size()) {
    uint32_t at = uint32_t(view.aborted % kEntries);
    auto count = uint32_t(std::min<size_t>(kEntries - at, sequences.size() - done));
    const PageId last_page = view.pages.empty() ? PageId{} : view.pages.back().page;
    MiniTransaction change(pool_, session_);
    PageId page = last_page;
    if (at == 0) {
      auto fresh = pool_.allocate(session_, 1, bufmgr::PageUse::kHousekeeping);
      if (!fresh) return fresh.error();
      page = *fresh;
    }
    GCL_TRY(change.reserve(2 * coherence::kPageSize));
    auto guard = pool_.fix_exclusive(session_, page);
    if (!guard) return guard.error();
    bufmgr::ExclusiveGuard before;
    if (at == 0 && last_page.valid()) {
      session_.next_wait(bufmgr::WaitOrder::kNew);
      auto last = pool_.fix_exclusive(session_, last_page);
      if (!last) return last.error();
      before = last.take();
    }
    change.join(*guard);
    if (at == 0) change.format(*guard, PageType::kList, 0);
    if (before) {
      change.join(before);
      change.set(before, kNextAt, link_to(page));
    }
    change.write(*guard, kEntriesAt + at * 8, &sequences[done], count * 8);
    change.commit();
    before.release();
    guard->release();
    if (at == 0 && !last_page.valid()) {
      uint64_t head = link_to(page);
      Batch batch(words_.clock().node());
      batch.write(words_.aborted_head(node_), &head, sizeof head);
      GCL_TRY(run(batch));
    }
    if (at == 0) view.pages.push_back({sequences[done], page});
    view.aborted += count;
    done += count;
  }
  return {};
}

// Learns where the pages begin that hold the first `count` entries.
Status TxnSystem::load_aborted(NodeId node, uint64_t count) {
  NodeView& view = nodes_[node.value];
  while (view.pages.size() * kEntries < count) {
    uint64_t link = 0;
    if (view.pages.empty()) {
      link = pool_.memory(session_).load(words_.aborted_head(node));
    } else {
      for (;;) {
        auto look = pool_.fix_optimistic(session_, view.pages.back().page);
        if (!look) return look.error();
        link = look->get<uint64_t>(kNextAt);
        if (look->validate()) break;
      }
    }
    const PageId page = linked_page(link);
    VERIFY(page.valid());
    for (;;) {
      auto look = pool_.fix_optimistic(session_, page);
      if (!look) return look.error();
      const auto first = look->get<uint64_t>(kEntriesAt);
      if (!look->validate()) continue;
      view.pages.push_back({first, page});
      break;
    }
  }
  view.aborted = std::max(view.aborted, count);
  return {};
}

}  // namespace engine
