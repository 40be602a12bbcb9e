#include "extension/engine/restart/restore.hpp"

#include <algorithm>
#include <unordered_set>

#include "extension/engine/restart/found_pages.hpp"
#include "extension/engine/restart/restored_roots.hpp"
#include "extension/engine/restart/restored_statuses.hpp"
#include "extension/engine/txn/overflow_page.hpp"

namespace engine {

namespace {

// More than a pool's clock counts from one save to the next.
constexpr uint64_t kClockStep = uint64_t{1} << 40;

class Restore {
 public:
  Restore(bufmgr::BufferPool& pool, Session& session, const TxnWords& words, const StatusesOfCopy& copy,
          std::span<const CommitEvidence* const> evidence)
      : pool_(pool), session_(session), words_(words), copy_(copy), evidence_(evidence) {}

  Result<std::vector<RestoredNode>> run() {
    auto found = find_pages(pool_, session_);
    if (!found) return found.error();
    GCL_TRY(free_former(*found));
    GCL_TRY(restore_roots(pool_, session_, words_, *found));
    std::vector<RestoredNode> nodes(words_.nodes());
    for (uint32_t n = 0; n < words_.nodes(); ++n)
      if (evidence_[n] != nullptr) GCL_TRY(restore_node({uint8_t(n)}, std::move(found->lists[n].sequences), &nodes[n]));
    const auto clock = session_.memory().faa(words_.clock(), kClockStep);
    if (!clock) return clock.error();
    return nodes;
  }

 private:
  // Lists and pages of words, but for those of nodes whose words stay.
  Status free_former(const FoundPages& found) {
    for (uint32_t n = 0; n < words_.nodes(); ++n) {
      if (evidence_[n] == nullptr) continue;
      for (const PageId page : found.lists[n].pages) GCL_TRY(pool_.free(session_, page, 1));
    }
    const auto kept = kept_directories();
    if (!kept) return kept.error();
    for (const FoundPages::Overflow& page : found.overflow) {
      const bool stays = page.owner == 0 ? kept->contains(page.page.raw) : evidence_[page.owner - 1] == nullptr;
      if (!stays) GCL_TRY(pool_.free(session_, page.page, 1));
    }
    return {};
  }

  // Roots and directories do not say whose they are.
  Result<std::unordered_set<uint64_t>> kept_directories() {
    std::unordered_set<uint64_t> kept;
    alignas(8) std::byte copy[coherence::kPageSize];
    for (uint32_t n = 0; n < words_.nodes(); ++n) {
      if (evidence_[n] != nullptr) continue;
      const auto link = session_.memory().load(words_.overflow_root({uint8_t(n)}));
      if (!link) return link.error();
      if (*link == 0) continue;
      kept.insert(linked_page(*link).raw);
      GCL_TRY(pool_.copy_page(session_, linked_page(*link), copy));
      const auto& root = *reinterpret_cast<const OverflowPage*>(copy);
      if (root.header.type != bufmgr::PageType::kStatus || root.owner != 0) return Errc::kCorrupt;
      for (const uint64_t directory : root.word)
        if (directory != 0) kept.insert(linked_page(directory).raw);
    }
    return kept;
  }

  Status restore_node(NodeId node, std::vector<uint64_t> listed, RestoredNode* to) {
    const StatusesOfCopy::Node& copy = copy_.nodes[node.value];
    const CommitEvidence& evidence = *evidence_[node.value];
    const auto swept = session_.memory().load(words_.swept(node));
    if (!swept) return swept.error();
    const auto aborted = ids_to_list(copy, evidence, *swept, std::move(listed));
    *to = {std::max(copy.reserved, evidence.greatest()), aborted.size()};
    if (!aborted.empty() && aborted.back() > to->reserved) return Errc::kCorrupt;  // txn.ids-noted-before-use
    return restore_statuses(pool_, session_, words_, node, to->reserved, aborted);
  }

  bufmgr::BufferPool& pool_;
  Session& session_;
  const TxnWords& words_;
  const StatusesOfCopy& copy_;
  const std::span<const CommitEvidence* const> evidence_;
};

}  // namespace

Result<std::vector<RestoredNode>> restore(bufmgr::BufferPool& pool, Session& session, const TxnWords& words,
                                          const StatusesOfCopy& copy, std::span<const CommitEvidence* const> evidence) {
  VERIFY(copy.nodes.size() == words.nodes() && evidence.size() == words.nodes());
  return Restore(pool, session, words, copy, evidence).run();
}

}  // namespace engine
