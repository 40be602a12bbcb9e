#include "recovery/page_sweep.hpp"

#include <algorithm>

#include "coherence/latch/latch_word.hpp"

namespace recovery {

using bufmgr::PageId;
using coherence::Batch;
using coherence::Errc;
using coherence::LatchWord;
using coherence::NodeId;
using coherence::NodeSet;
using coherence::Problem;
using coherence::Result;

namespace {

constexpr uint32_t kWordsAtOnce = 512;  // a READ of 4 KB
constexpr int kFetchesAtOnce = 16;      // each may wait for a peer
constexpr size_t kPagesAtOnce = 64;     // a batch of READs
static_assert(kPagesAtOnce <= size_t(coherence::kBatchOpsMax));

bool names(LatchWord word, NodeId node) { return word.owner() == node || word.readers().has(node); }

}  // namespace

// Of several dead nodes one may wait for another: each has its step.
Result<PageSweep::Step> PageSweep::step(bufmgr::Session& session, Problem* problem) noexcept {
  if (pool_.fenced()) return problem->set(Errc::kFenced, "the pool is fenced");
  if (session.interrupted()) return Errc::kInterrupted;
  Step all = Step::kIdle;
  Errc failed = Errc::kOk;
  const NodeSet repairable = pool_.coherence_node().repairable();
  for (uint32_t n = 0; n < pool_.nodes_max(); ++n) {
    const NodeId dead{uint8_t(n)};
    const uint64_t incarnation = pool_.coherence_node().info(dead).incarnation;
    Progress& progress = of_[n];
    if (!repairable.has(dead)) {
      progress = {};
      continue;
    }
    if (progress.incarnation != incarnation) progress = {.incarnation = incarnation};
    const auto step = step_for(session, dead, progress, problem);
    if (!step) {
      failed = step.error();
      continue;
    }
    if (all != Step::kWorked && *step != Step::kIdle) all = *step;
  }
  if (failed != Errc::kOk && all != Step::kWorked) return failed;
  if (all == Step::kIdle) redo_.forget_absent();
  return all;
}

Result<PageSweep::Step> PageSweep::step_for(bufmgr::Session& session, NodeId dead, Progress& progress,
                                            Problem* problem) noexcept {
  switch (progress.phase) {
    case Phase::kOthers: {
      const auto ended = others_ != nullptr ? others_->end(dead, progress.incarnation) : Result<bool>(true);
      if (!ended) return ended.error();
      if (*ended) progress.phase = Phase::kWords;
      return *ended ? Step::kWorked : Step::kWaits;
    }
    case Phase::kWords:
      return words(session, dead, progress);
    case Phase::kPages:
      return pages(session, dead, progress, problem);
    case Phase::kSwept:
      return pool_.coherence_node().swept(dead, progress.incarnation) ? Step::kWorked : Step::kWaits;
  }
  return Step::kIdle;
}

// One look at each word is enough: from when a node is repairable on no process writes its name
// (repair.quiesced-first).
Result<PageSweep::Step> PageSweep::words(bufmgr::Session& session, NodeId dead, Progress& progress) noexcept {
  coherence::Pool& pool = pool_.coherence_pool();
  if (progress.memory_node.value >= pool_.memory_nodes()) {
    progress.phase = Phase::kPages;
    progress.page = PageId{0};
    return Step::kWorked;
  }
  const auto places = pool.places(progress.memory_node);
  if (!places) return places.error();
  const auto count = uint32_t(std::min<uint64_t>(kWordsAtOnce, places->words() - progress.word));
  uint64_t word[kWordsAtOnce];
  Batch batch(progress.memory_node);
  batch.read(places->words_at + progress.word * sizeof(LatchWord), word, count * uint32_t(sizeof(LatchWord)));
  GCL_TRY(session.memory().run(batch));
  int fetches = 0;
  for (uint32_t i = 0; i < count; ++i, ++progress.word) {
    const uint64_t number = places->number_of_word(progress.word);
    if (number >= places->pages || !names(LatchWord{word[i]}, dead)) continue;
    if (fetches++ == kFetchesAtOnce) return Step::kWorked;
    const auto gone = let_go(session, PageId::at(progress.memory_node, number), dead);
    if (!gone) return gone.error();
    if (!*gone) return Step::kWaits;
  }
  if (progress.word == places->words()) {
    progress.word = 0;
    ++progress.memory_node.value;
  }
  return Step::kWorked;
}

// Whether the page's word names the node no longer.
Result<bool> PageSweep::let_go(bufmgr::Session& session, PageId page, NodeId dead) noexcept {
  using Named = coherence::Session::Named;
  const auto named = session.coherence().drop_dead(page, dead);
  if (!named) return named.error();
  if (*named == Named::kNot) return true;
  {
    const auto guard = pool_.fix_shared(session, page);  // takes the node's place, and repairs the page
    if (!guard && guard.error() == Errc::kHeld) return false;
    if (!guard) return guard.error();
    const auto below = session.coherence().drop_dead(page, dead, pool_.find(page));
    if (!below) return below.error();
    if (*below == Named::kNot) return true;
  }
  return false;
}

Result<PageSweep::Step> PageSweep::pages(bufmgr::Session& session, NodeId dead, Progress& progress,
                                         Problem* problem) noexcept {
  PageVersion some[kPagesAtOnce];
  const auto count = redo_.pages(dead, progress.incarnation, progress.page, some, session.memory(), problem);
  if (!count) return count.error();
  const auto all_written = written(session, std::span(some).first(*count));
  if (!all_written) return all_written.error();
  progress.missing |= !*all_written;
  if (*count == kPagesAtOnce) {
    progress.page = some[kPagesAtOnce - 1].page + 1;
    return Step::kWorked;
  }
  const bool missing = progress.missing;
  progress.page = PageId{0};
  progress.missing = false;
  if (missing) return Step::kWaits;
  progress.phase = Phase::kSwept;
  return Step::kWorked;
}

// Whether the pool has all of them.  What it lacks and this node owns is written now (recovery.owner-writes).
Result<bool> PageSweep::written(bufmgr::Session& session, std::span<const PageVersion> some) noexcept {
  coherence::Pool& pool = pool_.coherence_pool();
  bool all = true;
  for (size_t from = 0, end; from < some.size(); from = end) {
    uint64_t version[kPagesAtOnce];
    Batch batch(some[from].page.node());
    for (end = from; end < some.size() && some[end].page.node() == batch.to(); ++end)
      batch.read(pool.page_address(some[end].page), &version[end], sizeof version[end]);
    GCL_TRY(session.memory().run(batch));
    for (size_t i = from; i < end; ++i) {
      if (version[i] >= some[i].version) continue;
      all = false;
      coherence::Line* const line = pool_.find(some[i].page);
      if (line != nullptr) (void)session.coherence().write_back(*line, some[i].page);
    }
  }
  return all;
}

}  // namespace recovery
