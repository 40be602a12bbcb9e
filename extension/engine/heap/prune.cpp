// In-page prune (heap.prune-only-unseen, heap.prune-whole-prefix).
//
// The plan is made on a private copy, where statuses may be asked for; it is carried out only if the page has not
// changed since.  No guard is held while anything is asked.
#include <algorithm>
#include <span>

#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_change.hpp"
#include "extension/engine/heap/prune.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine {

namespace {

// Fewer free line pointers than these are few: the page will soon be pruned for another one.  Rows are moved together
// if that makes many.
constexpr uint32_t kFewLines = 8, kManyLines = 16;

// Whether a pruned page has its rows moved together, so that a row of `wanted` bytes, or many of them, find room
// (heap.moved-for-room).  `before` is as it was.
bool is_to_compact(const HeapPage& before, const HeapPage& pruned, uint32_t largest_hole, uint32_t wanted) {
  if (wanted == 0 || pruned.free_line() == 0) return false;
  if (pruned.lines_left() < kFewLines && pruned.lines_left_compacted(wanted) >= kManyLines) return true;
  // What was below all other rows becomes part of the gap, not a hole.
  const bool fits = largest_hole >= wanted && pruned.header().upper == before.header().upper;
  return !fits && pruned.place_for(pruned.free_line(), wanted) == 0 && pruned.room_compacted() >= align8(wanted);
}

class Plan {
 public:
  Plan(TxnSystem& txns, const std::byte* page) : txns_(txns), view_(page) {}

  Status make() {
    const uint16_t lines = view_.lines();
    for (uint16_t line = 1; line <= lines; ++line) {
      after_[line] = view_.line(line);
      if (!after_[line].normal()) continue;
      const RowHeader row = view_.row_header(line);
      if ((untouched_[line] = is_untouched(row))) {
        life_[line] = Liveness::kLive;
        continue;
      }
      bool mine;
      auto life = liveness(txns_, row, &mine);
      if (!life) return life.error();
      life_[line] = *life;
      never_[line] = *life == Liveness::kDead && never_made(row);
      if (*life != Liveness::kLive) continue;
      live_creator_ = row.creator;
      if (row.creator.kind() == RowTxnKind::kInserted) hint_[hints_++] = line;
    }
    for (uint16_t line = 1; line <= lines; ++line) {
      if (untouched_[line] && !view_.row_header(line).heap_only()) {
        reached_[line] = true;
        continue;
      }
      bool root = view_.line(line).normal() && !view_.row_header(line).heap_only();
      if (root || view_.line(line).state() == LineState::kRedirect) GCL_TRY(plan_chain(line));
    }
    // Versions of aborted updates: no chain leads to them, no index entry points to them.
    for (uint16_t line = 1; line <= lines; ++line)
      if (!reached_[line] && never_[line] && view_.row_header(line).heap_only()) remove(line, Line::unused());
    return {};
  }

  uint32_t removed() const { return removed_; }
  // Bytes that the largest of the removed rows leaves free.
  uint32_t largest_hole() const { return largest_hole_; }
  // Live rows whose creator's status had to be asked for.
  std::span<const uint16_t> hints() const { return {hint_, hints_}; }

  // The page as it will be: rows where they are, or moved together.
  void write(std::byte* to, bool compact) const {
    const PageHeader& header = view_.header();
    uint16_t lines = view_.lines();
    while (lines > 0 && after_[lines].state() == LineState::kUnused) --lines;
    Line pointers[kLinesMax + 1];
    std::copy(after_, after_ + lines + 1, pointers);
    std::memcpy(to, &header, coherence::kPageSize);
    uint32_t upper = compact ? move_together(pointers, lines, to) : header.special;
    PageSpace space = PageSpace::of(header);
    space.flags = compact ? 0 : uint16_t(HeapPage::kHasHoles);
    space.superseded = 0;
    for (uint16_t line = 1; line <= lines; ++line) {
      if (pointers[line].state() == LineState::kUnused) space.flags |= HeapPage::kHasUnused;
      if (!pointers[line].normal()) continue;
      upper = std::min(upper, pointers[line].offset());
      if (untouched_[line]) continue;
      if (view_.row_header(line).ended() || life_[line] == Liveness::kInsertRunning) ++space.superseded;
    }
    space.lower = uint16_t(bufmgr::kPageBody + lines * 4u);
    space.upper = uint16_t(upper);
    std::memcpy(to + bufmgr::kPageBody, pointers + 1, lines * 4u);
    std::memcpy(to + kPageSpaceAt, &space, sizeof space);
  }

 private:
  uint32_t move_together(Line* pointers, uint16_t lines, std::byte* to) const {
    uint16_t order[kLinesMax] = {};
    uint16_t rows = 0;
    for (uint16_t line = 1; line <= lines; ++line)
      if (pointers[line].normal()) order[rows++] = line;
    std::sort(order, order + rows, [&](uint16_t a, uint16_t b) { return pointers[a].offset() > pointers[b].offset(); });
    uint32_t upper = view_.header().special;
    for (uint16_t i = 0; i < rows; ++i) {
      uint16_t line = order[i];
      uint32_t bytes = pointers[line].bytes();
      upper -= align8(bytes);
      std::memcpy(to + upper, view_.row(line), bytes);
      std::memset(to + upper + bytes, 0, align8(bytes) - bytes);
      pointers[line] = Line::normal(upper, bytes);
    }
    return upper;
  }

  // Live and not ended: most rows are, so this is decided without a status look-up.
  bool is_untouched(const RowHeader& row) const {
    if (row.ended()) return false;
    const RowTxnKind kind = row.creator.kind();
    return kind == RowTxnKind::kFrozen || kind == RowTxnKind::kCommitted || row.creator == live_creator_;
  }

  // Dead because it was never made, rather than because it was ended.
  bool never_made(const RowHeader& row) const {
    if (row.creator.kind() == RowTxnKind::kAborted) return true;
    if (row.creator.kind() != RowTxnKind::kInserted) return false;
    auto status = txns_.known_status(row.creator.id());  // liveness() has just learned it
    return status ? status->aborted() : false;
  }

  void remove(uint16_t line, Line to) {
    if (after_[line].normal()) {
      ++removed_;
      largest_hole_ = std::max(largest_hole_, align8(after_[line].bytes()));
    }
    after_[line] = to;
  }

  // Whatever precedes the last dead version of a chain is dead too; all of it goes at once (heap.prune-whole-prefix).
  Status plan_chain(uint16_t root) {
    uint16_t chain[kLinesMax];
    int count = 0, dead = 0;  // chain[0, dead) go
    uint16_t line = root;
    if (view_.line(root).state() == LineState::kRedirect) line = uint16_t(view_.line(root).offset());
    if (line < 1 || line > view_.lines() || !view_.line(line).normal()) return Errc::kCorrupt;
    while (!reached_[line]) {
      if (count > 0 && never_[line]) break;
      reached_[line] = true;
      chain[count++] = line;
      if (life_[line] == Liveness::kDead) dead = count;
      RowHeader row = view_.row_header(line);
      uint16_t next = row.next_offset();
      if (!row.chain_goes_on() || next < 1 || next > view_.lines() || !view_.line(next).normal()) break;
      RowHeader successor = view_.row_header(next);
      if (!successor.heap_only()) break;
      auto same = is_successor(txns_, row, successor);
      if (!same) return same.error();
      if (!*same) break;
      line = next;
    }
    if (dead == 0) return {};
    for (int i = 0; i < dead; ++i) remove(chain[i], Line::unused());
    after_[root] = dead == count ? Line::dead() : Line::redirect(chain[dead]);
    return {};
  }

  TxnSystem& txns_;
  HeapPage view_;
  Line after_[kLinesMax + 1];
  RowTxn live_creator_{};  // of the row last found live
  Liveness life_[kLinesMax + 1] = {};
  bool untouched_[kLinesMax + 1] = {};
  bool never_[kLinesMax + 1] = {};
  bool reached_[kLinesMax + 1] = {};
  uint32_t removed_ = 0;
  uint32_t largest_hole_ = 0;
  uint16_t hints_ = 0;
  uint16_t hint_[kLinesMax];
};

}  // namespace

namespace {

// Line pointers that did not change, between two runs of those that did: fewer are logged with them.
constexpr uint32_t kRunGap = 5;

// The first line pointer from `n` on that differs, counted from 0; `count`: none.
uint32_t next_changed(const Line* before, const Line* after, uint32_t n, uint32_t count) {
  while (n + 2 <= count && std::memcmp(before + n, after + n, 2 * sizeof(Line)) == 0) n += 2;
  while (n < count && before[n].raw == after[n].raw) ++n;
  return n;
}

// Writes the line pointers that are different.  Prune makes no new ones.
void put_lines(MiniTransaction& change, ExclusiveGuard& page, const std::byte* to) {
  const auto* const before = reinterpret_cast<const Line*>(page.bytes() + bufmgr::kPageBody);
  const auto* const after = reinterpret_cast<const Line*>(to + bufmgr::kPageBody);
  const uint32_t count = HeapPage(to).lines();
  for (uint32_t from = next_changed(before, after, 0, count); from < count;) {
    uint32_t end = from + 1, next;
    while ((next = next_changed(before, after, end, count)) < std::min(count, end + kRunGap)) end = next + 1;
    change.write(page, bufmgr::kPageBody + from * uint32_t{sizeof(Line)}, after + from, (end - from) * sizeof(Line));
    from = next;
  }
}

// Writes where rows were moved to.  Bytes that are equal there by chance are no reason to leave them out: a hint that
// a former row left may be among them (bufmgr.redo-reads-no-hints).
void put_moved_rows(MiniTransaction& change, ExclusiveGuard& page, const std::byte* to) {
  const HeapPage before(page.bytes()), after(to);
  uint32_t from = coherence::kPageSize, end = 0;
  for (uint16_t line = 1; line <= after.lines(); ++line) {
    const Line now = after.line(line);
    if (!now.normal() || before.line(line).raw == now.raw) continue;
    from = std::min(from, now.offset());
    end = std::max(end, now.offset() + align8(now.bytes()));
  }
  if (from < end) change.write(page, from, to + from, end - from);
}

}  // namespace

void put_page(MiniTransaction& change, ExclusiveGuard& page, const std::byte* to, bool rows) {
  if (rows) put_moved_rows(change, page, to);
  put_lines(change, page, to);
  set_space(change, page, PageSpace::of(HeapPage(to).header()));
}

Status Heap::plan_prune(PageId page, uint32_t wanted, PrunedPage* to) {
  to->version = 0;
  alignas(8) std::byte copy[coherence::kPageSize];
  GCL_TRY(txns_.pool().copy_parts(txns_.session(), page, copy));
  if (!HeapPage(copy).is_heap()) return {};
  Plan plan(txns_, copy);
  GCL_TRY(plan.make());
  // The next prune of the page, and readers of these rows, need not ask again.
  if (!plan.hints().empty()) write_hints(page, copy, plan.hints().data(), int(plan.hints().size()));
  plan.write(to->bytes, false);
  to->removed = plan.removed();
  to->rows_moved = is_to_compact(HeapPage(copy), HeapPage(to->bytes), plan.largest_hole(), wanted);
  if (to->rows_moved) plan.write(to->bytes, true);
  if (to->removed == 0 && !to->rows_moved) return {};
  to->version = HeapPage(copy).header().version;
  stop_at(txns_.session(), StopPoint::kHeapPrunePlanned);
  return {};
}

Status Heap::plan_room(PageId page, uint32_t wanted, uint32_t superseded, PrunedPage* to) {
  GCL_TRY(plan_prune(page, wanted, to));
  if (wanted == 0) return {};
  const HeapPage after(to->bytes);
  const bool enough = to->version != 0 && !to->rows_moved && 2 * to->removed >= superseded &&
                      after.place_for(after.free_line(), wanted) != 0;
  if (enough) return {};
  GCL_TRY(txns_.refresh_horizon());
  return plan_prune(page, wanted, to);
}

Result<uint32_t> Heap::prune(uint32_t block, uint32_t wanted) {
  auto page = page_of(block);
  if (!page) return page.error();
  PrunedPage pruned;
  for (int i = 0; i < kPruneTries; ++i) {
    GCL_TRY(plan_prune(*page, wanted, &pruned));
    if (pruned.version == 0) return 0u;
    MiniTransaction change(txns_.pool(), txns_.session());
    GCL_TRY(change.reserve(kLogForPrune));
    auto guard = txns_.pool().fix_exclusive(txns_.session(), *page);
    if (!guard) return guard.error();
    if (!pruned.is_of(*guard)) continue;
    change.join(*guard);
    pruned.put(change, *guard);
    change.commit();
    return pruned.removed + (pruned.rows_moved ? 1 : 0);
  }
  return 0u;
}

}  // namespace engine
