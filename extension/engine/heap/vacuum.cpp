// VACUUM: prune every page, remove index entries of dead line pointers, and free those once no session can still be on
// the way from an index to them (heap.dead-pointers-wait).
#include <algorithm>
#include <cstddef>

#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_change.hpp"
#include "extension/engine/heap/relation_map.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine {

namespace {

constexpr size_t kDeadMax = 1 << 18;  // line pointers per round of index cleaning
constexpr uint32_t kHorizonPauseMs = 5;

}  // namespace

// One page: prunes it, counts what is left, collects dead line pointers.
Status Heap::survey(uint32_t block, VacuumStats& stats, std::vector<Tid>& dead, uint32_t* free_bytes) {
  auto removed = prune(block);
  if (!removed) return removed.error();
  stats.removed += *removed;
  auto page = page_of(block);
  if (!page) return page.error();
  alignas(8) std::byte copy[coherence::kPageSize];
  GCL_TRY(txns_.pool().copy_page(txns_.session(), *page, copy));
  HeapPage view(copy);
  *free_bytes = view.room();
  ++stats.pages;
  for (uint16_t line = 1; line <= view.lines(); ++line) {
    if (view.line(line).state() == LineState::kDead) dead.push_back({block, line});
    if (!view.line(line).normal()) continue;
    bool mine;
    auto life = liveness(txns_, view.row_header(line), &mine);
    if (!life) return life.error();
    if (*life == Liveness::kLive || *life == Liveness::kDeleteRunning) ++stats.live;
    if (*life == Liveness::kRecentlyDead || *life == Liveness::kDead) ++stats.recently_dead;
  }
  return {};
}

Result<VacuumStats> Heap::vacuum(IndexCleaner& indexes, uint32_t wait_ms) {
  VacuumStats stats;
  struct Done {
    TxnSystem& txns;
    ~Done() { txns.release_session_lock(); }
  } done{txns_};
  // heap.one-vacuum
  auto locked = txns_.take_session_lock_on(relation_.header, PageType::kRelation, offsetof(RelationPage, vacuum_token));
  stats.held = !locked && locked.error() == Errc::kHeld;
  if (stats.held) return stats;
  if (!locked) return locked.error();
  stats.skipped = !*locked;
  if (stats.skipped) return stats;
  GCL_TRY(txns_.refresh_horizon());
  auto blocks = used_blocks();
  if (!blocks) return blocks.error();
  std::vector<uint32_t> all = used_;
  std::vector<Tid> dead;
  std::vector<uint32_t> free_bytes;  // of the extent's pages, so far
  for (size_t i = 0; i < all.size(); ++i) {
    uint32_t extent = all[i] / kExtentPages;
    free_bytes.emplace_back();
    const uint64_t removed = stats.removed;
    GCL_TRY(survey(all[i], stats, dead, &free_bytes.back()));

    GCL_TRY(indexes.passed_page(stats.removed != removed));
    if (i + 1 == all.size() || all[i + 1] / kExtentPages != extent) {
      const Status noted = note_free_all(extent * kExtentPages, free_bytes);
      if (!noted && noted.error() != Errc::kHeld) return noted.error();  // serializable.housekeeping-skips
      free_bytes.clear();
    }
    if (dead.size() >= kDeadMax) GCL_TRY(free_dead(indexes, dead, wait_ms, stats));
  }
  GCL_TRY(free_dead(indexes, dead, wait_ms, stats));
  GCL_TRY(indexes.finish(stats));
  const Status noted = note_vacuumed(stats);
  if (!noted && noted.error() != Errc::kHeld) return noted.error();
  return stats;
}

Status Heap::free_dead(IndexCleaner& indexes, std::vector<Tid>& dead, uint32_t wait_ms, VacuumStats& stats) {
  if (dead.empty()) return {};
  // Entries that could not be removed keep the line pointers (serializable.housekeeping-skips).
  const Status removed = indexes.remove(dead);
  if (!removed && removed.error() != Errc::kHeld) return removed.error();
  if (!removed) {
    stats.left += dead.size();
    dead.clear();
    return {};
  }
  stop_at(txns_.session(), StopPoint::kHeapPointersUnindexed);
  // A scan that took such a Tid from an index before now holds a snapshot; when the horizon has passed now, it is over
  // (heap.dead-pointers-wait).
  const auto moment = txns_.pass_moment();
  if (!moment) return moment.error();
  for (uint32_t waited = 0;; waited += kHorizonPauseMs) {
    auto horizon = txns_.refresh_horizon(*moment);
    if (!horizon) return horizon.error();
    if (*horizon > *moment) break;
    if (waited >= wait_ms) {
      stats.left += dead.size();
      dead.clear();
      return {};
    }
    GCL_TRY(txns_.waiter().pause(kHorizonPauseMs));
  }
  for (size_t i = 0; i < dead.size();) {
    size_t end = i;
    while (end < dead.size() && dead[end].block == dead[i].block) ++end;
    auto freed = free_lines({&dead[i], end - i});
    if (!freed && freed.error() != Errc::kHeld) return freed.error();
    if (freed)
      stats.freed += *freed;
    else
      stats.left += end - i;
    i = end;
  }
  dead.clear();
  return {};
}

// All of one block.
Result<uint32_t> Heap::free_lines(std::span<const Tid> dead) {
  auto page = page_of(dead[0].block);
  if (!page) return page.error();
  MiniTransaction change(txns_.pool(), txns_.session());
  GCL_TRY(change.reserve(kLinesMax * 4 + kLogForHeader));
  auto guard = txns_.pool().fix_exclusive(txns_.session(), *page);
  if (!guard) return guard.error();
  HeapPage view(guard->bytes());
  uint16_t lines = view.lines();
  Line after[kLinesMax + 1];
  for (uint16_t line = 1; line <= lines; ++line) after[line] = view.line(line);
  uint32_t freed = 0;
  for (Tid tid : dead) {
    if (tid.offset > lines || after[tid.offset].state() != LineState::kDead) continue;
    after[tid.offset] = Line::unused();
    ++freed;
  }
  if (freed == 0) return 0u;
  while (lines > 0 && after[lines].state() == LineState::kUnused) --lines;
  PageSpace space = PageSpace::of(guard->header());
  space.lower = uint16_t(bufmgr::kPageBody + lines * 4u);
  space.flags |= HeapPage::kHasUnused;
  change.join(*guard);
  if (lines != 0) change.write(*guard, bufmgr::kPageBody, &after[1], lines * 4u);
  set_space(change, *guard, space);
  change.commit();
  return freed;
}

}  // namespace engine
