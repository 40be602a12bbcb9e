#include "extension/engine/restart/restored_statuses.hpp"

#include <algorithm>
#include <cstddef>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/txn/aborted_list_page.hpp"

namespace engine {

using bufmgr::BufferPool;
using bufmgr::MiniTransaction;
using coherence::Batch;

namespace {

constexpr uint32_t kEntries = AbortedListPage::kEntries;

// Page `number` of the list.
Status write_list_page(BufferPool& pool, Session& session, NodeId node, const std::vector<PageId>& pages, size_t number,
                       std::span<const uint64_t> entries) {
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(2 * coherence::kPageSize));
  auto guard = pool.fix_exclusive(session, pages[number]);
  if (!guard) return guard.error();
  change.join(*guard);
  change.format(*guard, bufmgr::PageType::kList, 0);
  change.set(*guard, offsetof(AbortedListPage, next), number + 1 < pages.size() ? link_to(pages[number + 1]) : 0);
  change.set(*guard, offsetof(AbortedListPage, owner), node.value + uint64_t{1});
  change.set(*guard, offsetof(AbortedListPage, number), uint64_t{number});
  change.write(*guard, offsetof(AbortedListPage, entry), entries.data(), uint32_t(entries.size_bytes()));
  change.commit();
  return {};
}

// The head of a new list; invalid: an empty one.
Result<PageId> write_list(BufferPool& pool, Session& session, NodeId node, const std::vector<uint64_t>& aborted) {
  std::vector<PageId> pages((aborted.size() + kEntries - 1) / kEntries);
  for (PageId& page : pages) {
    const auto fresh = pool.allocate(session, 1, bufmgr::PageUse::kHousekeeping);
    if (!fresh) return fresh.error();
    page = *fresh;
  }
  std::span<const uint64_t> rest(aborted);
  for (size_t number = 0; number < pages.size(); ++number) {
    const auto some = rest.first(std::min<size_t>(rest.size(), kEntries));
    GCL_TRY(write_list_page(pool, session, node, pages, number, some));
    rest = rest.subspan(some.size());
  }
  return pages.empty() ? PageId{} : pages.front();
}

// restart.all-ids-frozen
Status clear_ring(Session& session, const TxnWords& words, NodeId node) {
  static constexpr uint64_t kZeros[1024] = {};
  for (uint64_t at = 0; at < words.slots(); at += std::size(kZeros)) {
    Batch batch(words.clock().node());
    batch.write(words.status(TxnId::make(node, at)), kZeros,
                uint32_t(std::min<uint64_t>(words.slots() - at, std::size(kZeros)) * 8));
    GCL_TRY(session.memory().run(batch));
  }
  return {};
}

}  // namespace

std::vector<uint64_t> ids_to_list(const StatusesOfCopy::Node& copy, const CommitEvidence& evidence, uint64_t swept,
                                  std::vector<uint64_t> listed) {
  std::vector<uint64_t> ids = std::move(listed);
  ids.insert(ids.end(), copy.aborted.begin(), copy.aborted.end());
  for (const auto& [sequence, first] : copy.in_doubt)
    if (!evidence.committed(first)) ids.push_back(sequence);
  for (uint64_t sequence = copy.reserved + 1; sequence <= evidence.greatest(); ++sequence)
    if (!evidence.committed(sequence)) ids.push_back(sequence);
  std::erase_if(ids, [&](uint64_t sequence) { return sequence <= swept; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Status restore_statuses(BufferPool& pool, Session& session, const TxnWords& words, NodeId node, uint64_t reserved,
                        const std::vector<uint64_t>& aborted) {
  const auto head = write_list(pool, session, node, aborted);
  if (!head) return head.error();
  GCL_TRY(clear_ring(session, words, node));
  const uint64_t link = head->valid() ? link_to(*head) : 0, count = aborted.size(), none = 0;
  Batch batch(words.clock().node());
  batch.write(words.reserved(node), &reserved, sizeof reserved);
  batch.write(words.low_water(node), &reserved, sizeof reserved);
  batch.write(words.aborted_count(node), &count, sizeof count);
  batch.write(words.aborted_head(node), &link, sizeof link);
  batch.write(words.frozen(node), &reserved, sizeof reserved);
  batch.write(words.overflow_root(node), &none, sizeof none);
  return session.memory().run(batch);
}

}  // namespace engine
