// Status words that leave the ring: an old snapshot needs their timestamps long after their places are wanted for new
// ids.  They are final, so they are copied to pages and never change there (txn.overflow-is-final); of an id that still
// runs the page says that the word is pinned in the ring (txn.running-id-pinned).
//
//   root page -> directory pages -> pages of kOverflowWords words;  a word's block number is sequence / kOverflowWords
//
// Root and directories stay.  A page of words is freed when all its ids are frozen, and may then be anything: a reader
// checks the owner and block that the page names.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/txn/overflow_page.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

using bufmgr::MiniTransaction;
using bufmgr::PageType;
using coherence::Batch;

namespace {

constexpr uint64_t kOverflowWords = OverflowPage::kWords, kFanout = OverflowPage::kFanout;
constexpr uint64_t kOverflowStep = 2048;  // ids per call
constexpr uint32_t kOwnerAt = offsetof(OverflowPage, owner);
constexpr uint32_t kBlockAt = offsetof(OverflowPage, block);
constexpr uint32_t kWordsAt = offsetof(OverflowPage, word);

constexpr uint32_t word_at(uint64_t i) { return uint32_t(kWordsAt + i * 8); }

}  // namespace

// Word `i` of a page of ours; `owner` and `block` as on the page.
Result<bool> TxnSystem::read_overflow(PageId page, uint64_t owner, uint64_t block, uint64_t i, uint64_t* to) {
  for (;;) {
    auto optimistic = pool_.fix_optimistic(session_, page);
    if (!optimistic) return optimistic.error();
    const bool ours = optimistic->get<bufmgr::PageHeader>(0).type == PageType::kStatus &&
                      optimistic->get<uint64_t>(kOwnerAt) == owner && optimistic->get<uint64_t>(kBlockAt) == block;
    *to = optimistic->get<uint64_t>(word_at(i));
    if (optimistic->validate()) return ours;
  }
}

// The page of a block's words; invalid: there is none (any more).
Result<PageId> TxnSystem::find_overflow(NodeId node, PageId root, uint64_t block) {
  uint64_t link, word;
  if (!root.valid()) return PageId{};
  auto there = read_overflow(root, 0, 0, block / kFanout % kFanout, &link);
  if (!there) return there.error();
  if (!*there) return Errc::kCorrupt;
  if (link == 0) return PageId{};
  there = read_overflow(linked_page(link), 0, 0, block % kFanout, &link);
  if (!there) return there.error();
  if (!*there) return Errc::kCorrupt;
  if (link == 0) return PageId{};
  there = read_overflow(linked_page(link), node.value + uint64_t{1}, block, 0, &word);
  if (!there) return there.error();
  return *there ? linked_page(link) : PageId{};
}

Result<std::optional<StatusWord>> TxnSystem::overflow_word(TxnId id, PageId root) {
  const uint64_t block = id.sequence() / kOverflowWords;
  auto page = find_overflow(id.node(), root, block);
  if (!page) return page.error();
  if (!page->valid()) return std::optional<StatusWord>{};
  uint64_t word;
  auto there = read_overflow(*page, id.node().value + uint64_t{1}, block, id.sequence() % kOverflowWords, &word);
  if (!there) return there.error();
  return *there ? std::optional(StatusWord{word}) : std::nullopt;
}

// --- the node's own: one process at a time ---------------------------------------------------------------------------

Result<PageId> TxnSystem::overflow_root() {
  const auto link = load(words_.overflow_root(node_));
  if (!link) return link.error();
  return linked_page(*link);
}

Result<PageId> TxnSystem::make_overflow_page(uint64_t owner, uint64_t block) {
  auto page = pool_.allocate(session_, 1, bufmgr::PageUse::kHousekeeping);  // without ids not even DELETE works
  if (!page) return page.error();
  MiniTransaction change(pool_, session_);
  GCL_TRY(change.reserve(coherence::kPageSize + 64));
  auto guard = pool_.fix_exclusive(session_, *page);
  if (!guard) return guard.error();
  change.join(*guard);
  change.format(*guard, PageType::kStatus, 0);
  change.set(*guard, kOwnerAt, owner);
  change.set(*guard, kBlockAt, block);
  change.commit();
  return *page;
}

Status TxnSystem::write_overflow(PageId page, uint64_t i, const void* words, uint64_t count) {
  MiniTransaction change(pool_, session_);
  GCL_TRY(change.reserve(coherence::kPageSize + 64));
  auto guard = pool_.fix_exclusive(session_, page);
  if (!guard) return guard.error();
  change.join(*guard);
  change.write(*guard, word_at(i), words, uint32_t(count * 8));
  change.commit();
  return {};
}

// The page for a block's words, made if need be.  A page is linked when it is whole; interrupted before, it is lost.
Result<PageId> TxnSystem::overflow_page(uint64_t block) {
  const auto known = overflow_root();
  if (!known) return known.error();
  PageId root = *known;
  if (!root.valid()) {
    auto made = make_overflow_page(0, 0);
    if (!made) return made.error();
    root = *made;
    const uint64_t link = link_to(root), frozen = shared_.frozen.load(std::memory_order_acquire);
    Batch batch(words_.clock().node());
    batch.write(words_.frozen(node_), &frozen, sizeof frozen);  // counts from now on (transport.seen-in-order)
    batch.write(words_.overflow_root(node_), &link, sizeof link);
    GCL_TRY(run(batch));
  }
  auto found = find_overflow(node_, root, block);
  if (!found) return found.error();
  if (found->valid()) return *found;
  uint64_t link;
  auto there = read_overflow(root, 0, 0, block / kFanout % kFanout, &link);
  if (!there) return there.error();
  if (link == 0) {
    auto made = make_overflow_page(0, 0);
    if (!made) return made.error();
    link = link_to(*made);
    GCL_TRY(write_overflow(root, block / kFanout % kFanout, &link, 1));
  }
  const PageId directory = linked_page(link);
  auto page = make_overflow_page(node_.value + uint64_t{1}, block);
  if (!page) return page.error();
  link = link_to(*page);
  GCL_TRY(write_overflow(directory, block % kFanout, &link, 1));
  return *page;
}

// Moves the low-water mark over final ids whose timestamps some snapshot still needs.
Status TxnSystem::move_to_overflow() {
  const uint64_t low = shared_.low_water.load(std::memory_order_acquire);
  // The newest quarter keeps its places: most of it ends soon.
  const uint64_t newest = shared_.next.load(std::memory_order_acquire) - words_.slots() / 4;
  const uint64_t end = std::min(newest, low + 1 + kOverflowStep);
  if (end <= low + 1) return {};
  if (low / kOverflowWords - shared_.frozen.load(std::memory_order_acquire) / kOverflowWords + 4 >= kFanout * kFanout)
    return {};
  std::vector<StatusWord> log(end - low - 1);
  std::vector<uint64_t> pinned;
  GCL_TRY(sort_out(low + 1, log, pinned));
  for (size_t i = 0; i < log.size();) {
    const uint64_t sequence = low + 1 + i;
    const size_t part = std::min<size_t>(log.size() - i, kOverflowWords - sequence % kOverflowWords);
    auto page = overflow_page(sequence / kOverflowWords);
    if (!page) return page.error();
    GCL_TRY(write_overflow(*page, sequence % kOverflowWords, &log[i], part));
    i += part;
  }
  if (log.empty()) return {};
  pin_in_ring(pinned);
  const uint64_t reached = low + log.size();
  Batch batch(words_.clock().node());
  batch.write(words_.low_water(node_), &reached, sizeof reached);
  GCL_TRY(run(batch));
  shared_.low_water.store(reached, std::memory_order_release);
  return {};
}

// The one word of an id that was pinned until now.
Status TxnSystem::write_overflow_word(uint64_t sequence, StatusWord word) {
  const auto root = overflow_root();
  if (!root) return root.error();
  auto page = find_overflow(node_, *root, sequence / kOverflowWords);
  if (!page) return page.error();
  return page->valid() ? write_overflow(*page, sequence % kOverflowWords, &word, 1) : Status{Errc::kCorrupt};
}

// The words of this node's ids that are not frozen, from where they are.
Status TxnSystem::read_words(uint64_t first, uint64_t count, StatusWord* to) {
  const uint64_t low = shared_.low_water.load(std::memory_order_acquire);
  alignas(8) std::byte bytes[coherence::kPageSize];
  while (count > 0 && first <= low) {
    const auto root = overflow_root();
    if (!root) return root.error();
    auto page = find_overflow(node_, *root, first / kOverflowWords);
    if (!page) return page.error();
    if (!page->valid()) return Errc::kCorrupt;
    GCL_TRY(pool_.copy_page(session_, *page, bytes));
    const uint64_t at = first % kOverflowWords;
    const uint64_t part = std::min({count, kOverflowWords - at, low - first + 1});
    std::memcpy(to, bytes + word_at(at), part * 8);
    first += part, count -= part, to += part;
  }
  return count > 0 ? read_log(first, count, to) : Status{};
}

// REQUIRES: the ids up to `to` are known to be frozen.  Interrupted half-way it loses a page.
Status TxnSystem::free_overflow(uint64_t from, uint64_t to) {
  const auto known = overflow_root();
  if (!known) return known.error();
  const PageId root = *known;
  if (!root.valid()) return {};
  for (uint64_t block = (from + 1) / kOverflowWords; (block + 1) * kOverflowWords <= to + 1; ++block) {
    auto page = find_overflow(node_, root, block);
    if (!page) return page.error();
    if (!page->valid()) continue;
    uint64_t link;
    auto there = read_overflow(root, 0, 0, block / kFanout % kFanout, &link);
    if (!there) return there.error();
    const uint64_t none = 0;
    GCL_TRY(write_overflow(linked_page(link), block % kFanout, &none, 1));
    GCL_TRY(pool_.free(session_, *page, 1));
  }
  return {};
}

}  // namespace engine
