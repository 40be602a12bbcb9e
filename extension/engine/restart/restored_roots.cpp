#include "extension/engine/restart/restored_roots.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "extension/engine/ddl/ddl_words.hpp"

namespace engine {

using bufmgr::BufferPool;
using bufmgr::Session;
using coherence::Batch;
using coherence::Errc;
using coherence::PageId;
using coherence::PoolAddress;
using coherence::Result;
using coherence::Status;

namespace {

struct Candidate {
  PageId page;
  uint64_t holds = 0;  // records of its chain, or entries
  bool bare = true;    // holds nothing, and leads nowhere
};

Status write_word(Session& session, PoolAddress at, uint64_t value) {
  Batch batch(at.node());
  batch.write(at, &value, sizeof value);
  return session.memory().run(batch);
}

// Invalid: the word is 0, and there is no root.
Result<Candidate> choose(BufferPool& pool, Session& session, PoolAddress word, const std::vector<Candidate>& roots) {
  const auto link = session.memory().load(word);
  if (!link) return link.error();
  const auto is_linked = [&](const Candidate& root) { return link_to(root.page) == *link; };
  const auto less = [](const Candidate& a, const Candidate& b) { return a.holds < b.holds; };
  const auto chosen = *link != 0 ? std::ranges::find_if(roots, is_linked) : std::ranges::max_element(roots, less);
  if (chosen == roots.end() && *link != 0) return Errc::kCorrupt;
  if (chosen == roots.end()) return Candidate{};
  for (const Candidate& root : roots)
    if (root.page != chosen->page && root.bare) GCL_TRY(pool.free(session, root.page, 1));
  if (*link == 0) GCL_TRY(write_word(session, word, link_to(chosen->page)));
  return *chosen;
}

// Pages of the node's list that no other page leads to, each with the records of its chain.
std::vector<Candidate> reclaim_roots(const FoundPages& found, uint32_t node) {
  std::unordered_map<uint64_t, const FoundPages::Reclaim*> pages;
  std::unordered_set<uint64_t> inner;
  for (const FoundPages::Reclaim& page : found.reclaim) {
    if (page.node != node) continue;
    pages[page.page.raw] = &page;
    if (page.next.valid()) inner.insert(page.next.raw);
  }
  std::vector<Candidate> roots;
  for (const auto& [raw, first] : pages) {
    if (inner.contains(raw)) continue;
    Candidate root{.page = first->page};
    auto at = pages.find(raw);
    for (size_t length = 0; at != pages.end() && length < pages.size(); ++length) {
      root.holds += at->second->records;
      at = pages.find(at->second->next.raw);
    }
    root.bare = root.holds == 0 && !first->next.valid();
    roots.push_back(root);
  }
  return roots;
}

}  // namespace

Status restore_roots(BufferPool& pool, Session& session, const TxnWords& words, const FoundPages& found) {
  for (uint32_t n = 0; n < words.nodes(); ++n) {
    const auto root = choose(pool, session, words.reclaim_root({uint8_t(n)}), reclaim_roots(found, n));
    if (!root) return root.error();
  }
  std::vector<Candidate> logs;
  for (const FoundPages::LogRoot& root : found.log_roots)
    logs.push_back({.page = root.page, .holds = root.entries, .bare = root.entries == 0});
  const PoolAddress ddl = pool.region(bufmgr::Region::kDdl).at;
  const auto log = choose(pool, session, ddl + kDdlLogRoot, logs);
  if (!log) return log.error();
  return log->page.valid() ? write_word(session, ddl + kDdlLogEntries, log->holds) : Status{};
}

}  // namespace engine
