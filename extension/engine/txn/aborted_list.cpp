// The list of a node's aborted ids that have no word any more.  It lies in pages, which a node's processes have in
// their common cache; a process knows only where each page of it begins (txn.aborted-list-in-place).
//
//   head -> page of kEntries sequences -> ...       ascending; entries at or above the count do not count yet
//
// The count is of all ids that were ever listed; pages go from the head when their ids are forgotten
// (txn.forget-unnamed-ids).  So a page says whose list it is of, and which one in it: a reader of a page that has gone
// sees that.
#include <algorithm>
#include <cstddef>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/txn/aborted_list_page.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

using bufmgr::MiniTransaction;
using bufmgr::PageType;
using coherence::Batch;

namespace {

constexpr uint32_t kNextAt = offsetof(AbortedListPage, next);
constexpr uint32_t kListOwnerAt = offsetof(AbortedListPage, owner);
constexpr uint32_t kListNumberAt = offsetof(AbortedListPage, number);
constexpr uint32_t kEntriesAt = offsetof(AbortedListPage, entry);
constexpr uint32_t kEntries = AbortedListPage::kEntries;

constexpr uint64_t kAnyNumber = ~uint64_t{0};

constexpr uint32_t entry_at(uint64_t i) { return uint32_t(kEntriesAt + i * 8); }

// To be validated by the caller.
bool is_list_page(const bufmgr::OptimisticGuard& optimistic, NodeId node) {
  return optimistic.get<bufmgr::PageHeader>(0).type == PageType::kList &&
         optimistic.get<uint64_t>(kListOwnerAt) == node.value + 1u;
}

}  // namespace

// The only page that may have it; null: none.
const TxnSystem::ListPage* TxnSystem::NodeView::page_for(uint64_t sequence) const {
  auto behind = std::upper_bound(pages.begin(), pages.end(), sequence,
                                 [](uint64_t value, const ListPage& page) { return value < page.first; });
  return behind == pages.begin() ? nullptr : &*(behind - 1);
}

// Nullopt: the page has gone.  To be validated by the caller.
std::optional<bool> TxnSystem::listed_in(NodeId node, const ListPage& page, const bufmgr::OptimisticGuard& optimistic,
                                         uint64_t sequence) const {
  if (!is_list_page(optimistic, node) || optimistic.get<uint64_t>(kListNumberAt) != page.number) return std::nullopt;
  uint64_t low = 0, high = std::min<uint64_t>(nodes_[node.value].aborted - page.number * kEntries, kEntries);
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    const auto found = optimistic.get<uint64_t>(entry_at(middle));
    if (found == sequence) return true;
    (found < sequence ? low : high) = found < sequence ? middle + 1 : middle;
  }
  return false;
}

Result<bool> TxnSystem::listed(NodeId node, uint64_t sequence) {
  for (bool missed = false;;) {
    const NodeView& view = nodes_[node.value];
    if (sequence <= view.swept) return false;
    const ListPage* page = view.page_for(sequence);
    if (page == nullptr) return false;
    auto optimistic = pool_.fix_optimistic(session_, page->page);
    if (!optimistic) return optimistic.error();
    const auto there = listed_in(node, *page, *optimistic, sequence);
    if (!optimistic->validate()) continue;
    if (there) return *there;
    if (missed) return Errc::kCorrupt;
    missed = true;  // txn.forget-unnamed-ids: a page goes after its ids were said to be forgotten
    const auto swept = load(words_.swept(node));
    if (!swept) return swept.error();
    learn_swept(node, *swept);
  }
}

// Nullopt: the page is not at hand just now.
std::optional<bool> TxnSystem::known_listed(NodeId node, uint64_t sequence) const {
  const NodeView& view = nodes_[node.value];
  if (sequence <= view.swept) return false;
  const ListPage* page = view.page_for(sequence);
  if (page == nullptr) return false;
  const bufmgr::OptimisticGuard optimistic = pool_.peek(session_, page->page);
  if (!optimistic) return std::nullopt;
  const auto there = listed_in(node, *page, optimistic, sequence);
  return optimistic.validate() ? there : std::nullopt;
}

void TxnSystem::learn_swept(NodeId node, uint64_t swept) {
  NodeView& view = nodes_[node.value];
  view.swept = std::max(view.swept, swept);
  size_t gone = 0;
  while (gone + 1 < view.pages.size() && view.pages[gone + 1].first <= view.swept + 1) ++gone;
  view.pages.erase(view.pages.begin(), view.pages.begin() + ptrdiff_t(gone));
}

// Called by one process of the node at a time, after load_aborted().  Interrupted half-way it has listed ids that the
// count does not cover yet: they do not count, and the next call writes the same entries again.
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
    if (at == 0) {
      change.format(*guard, PageType::kList, 0);
      change.set(*guard, kListOwnerAt, node_.value + uint64_t{1});
      change.set(*guard, kListNumberAt, view.aborted / kEntries);
    }
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
    if (at == 0) view.pages.push_back({sequences[done], page, view.aborted / kEntries});
    view.aborted += count;
    done += count;
  }
  return {};
}

// A page of the list: where it begins, which one it is, what follows it.  kNotFound: it has gone.
Status TxnSystem::read_list_page(NodeId node, const ListPage& at, ListPage* page, uint64_t* next) {
  for (;;) {
    auto optimistic = pool_.fix_optimistic(session_, at.page);
    if (!optimistic) return optimistic.error();
    const bool ours = is_list_page(*optimistic, node);
    *page = {optimistic->get<uint64_t>(kEntriesAt), at.page, optimistic->get<uint64_t>(kListNumberAt)};
    *next = optimistic->get<uint64_t>(kNextAt);
    if (!optimistic->validate()) continue;
    return ours && (at.number == kAnyNumber || page->number == at.number) ? Status{} : Status{Errc::kNotFound};
  }
}

// Reads the head again: its page may have gone, and come back as the list's last.
Status TxnSystem::first_list_page(NodeId node, ListPage* page) {
  const auto head = load(words_.aborted_head(node));
  if (!head) return head.error();
  uint64_t next;
  VERIFY(*head != 0);
  GCL_TRY(read_list_page(node, {0, linked_page(*head), kAnyNumber}, page, &next));
  const auto again = load(words_.aborted_head(node));
  if (!again) return again.error();
  return *again == *head ? Status{} : Status{Errc::kNotFound};
}

// Learns where the pages begin that hold the first `count` entries, as far as they are there.  Interrupted, it has
// learned nothing.
Status TxnSystem::load_aborted(NodeId node, uint64_t count) {
  NodeView& view = nodes_[node.value];
  std::vector<ListPage> pages = view.pages;
  while (pages.empty() ? count > 0 : (pages.back().number + 1) * kEntries < count) {
    ListPage page;
    uint64_t link = 0;
    Status read = pages.empty() ? first_list_page(node, &page) : read_list_page(node, pages.back(), &page, &link);
    if (read && !pages.empty()) {
      VERIFY(link != 0);
      read = read_list_page(node, {0, linked_page(link), page.number + 1}, &page, &link);
    }
    if (read)
      pages.push_back(page);
    else if (read.error() == Errc::kNotFound)
      pages.clear();  // txn.forget-unnamed-ids: from the head, which has moved on
    else
      return read;
  }
  view.pages.swap(pages);
  view.aborted = std::max(view.aborted, count);
  return {};
}

// --- forgetting (txn.forget-unnamed-ids): one process of the node ----------------------------------------------------

Result<uint64_t> TxnSystem::aborted_pages() {
  const auto count = load(words_.aborted_count(node_));
  if (!count) return count.error();
  GCL_TRY(load_aborted(node_, *count));
  const auto swept = load(words_.swept(node_));
  if (!swept) return swept.error();
  learn_swept(node_, *swept);
  return nodes_[node_.value].pages.size();
}

Result<bool> TxnSystem::was_rolled_back(TxnId id) { return listed(id.node(), id.sequence()); }

Status TxnSystem::forget_aborted(uint64_t upto) {
  Batch batch(words_.clock().node());
  batch.write(words_.swept(node_), &upto, sizeof upto);
  GCL_TRY(run(batch));
  learn_swept(node_, upto);
  for (;;) {
    const auto head = load(words_.aborted_head(node_));
    if (!head) return head.error();
    if (*head == 0) return {};
    ListPage page, follower;
    uint64_t next, behind;
    GCL_TRY(read_list_page(node_, {0, linked_page(*head), kAnyNumber}, &page, &next));
    if (next == 0) return {};
    GCL_TRY(read_list_page(node_, {0, linked_page(next), page.number + 1}, &follower, &behind));
    if (follower.first > upto + 1) return {};
    Batch on(words_.clock().node());
    on.write(words_.aborted_head(node_), &next, sizeof next);
    GCL_TRY(run(on));
    GCL_TRY(pool_.free(session_, page.page, 1));  // interrupted, it is lost, as in a crash
  }
}

}  // namespace engine
