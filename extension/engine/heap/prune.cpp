// In-page prune (heap.prune-only-unseen, heap.prune-whole-prefix).
//
// The plan is made on a private copy, where statuses may be asked for; it is carried out only if the page has not
// changed since.  No guard is held while anything is asked.  An update whose page is full, and that knows all statuses,
// plans under its guard (heap.room-at-once).
#include <algorithm>
#include <optional>
#include <span>

#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_change.hpp"
#include "extension/engine/heap/page_statuses.hpp"
#include "extension/engine/heap/prune.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine {

namespace {

// Fewer free line pointers than these are few: the page will soon be pruned for another one.  Rows are moved together
// if that makes many.
constexpr uint32_t kFewLines = 8, kManyLines = 16;

// What a removed row leaves free.
struct Hole {
  uint32_t offset = 0, bytes = 0;
};

// Where a row of `wanted` bytes may lie on a pruned page; 0: nowhere.  `before` is as it was, `largest` the largest of
// the new holes, which mostly is as large as the new row: then nothing else is looked for.
uint32_t place_on(const HeapPage& before, const HeapPage& pruned, uint16_t line, Hole largest, uint32_t wanted) {
  const bool has_pointer = line != 0 && (line <= pruned.lines() || pruned.gap() >= 4);
  // What was below all other rows becomes part of the gap, not a hole.
  const bool fits = largest.bytes >= align8(wanted) && pruned.header().upper == before.header().upper;
  return has_pointer && fits ? largest.offset : pruned.place_for(line, wanted);
}

// Whether a pruned page has its rows moved together, so that a row of `wanted` bytes, or many of them, find room
// (heap.moved-for-room).
bool is_to_compact(const HeapPage& pruned, uint16_t line, uint32_t place, uint32_t wanted) {
  if (wanted == 0 || line == 0) return false;
  const HeapPage::Use use = pruned.use();
  if (pruned.lines_left(use) < kFewLines && pruned.lines_left_compacted(use, wanted) >= kManyLines) return true;
  return place == 0 && pruned.room_compacted(use) >= align8(wanted);
}

class Plan {
 public:
  enum class Asks : bool { kNo, kYes };
  Plan(TxnSystem& txns, const std::byte* page, Asks asks) : txns_(txns), view_(page), asks_(asks) {}

  // kNotFound: it asks for no status, and one is not known.
  Status make() {
    std::optional<PageStatuses> statuses;
    if (asks_ == Asks::kYes) statuses.emplace(txns_, view_);
    const uint16_t lines = view_.lines();
    for (uint16_t line = 1; line <= lines; ++line) {
      const Line pointer = after_[line] = view_.line(line);
      if (!pointer.normal()) {
        if (pointer.state() == LineState::kRedirect) to_follow_[follow_++] = line;
        continue;
      }
      const RowHeader row = view_.row_header_at(pointer);
      if (is_untouched(row)) {
        untouched_[line] = true;
        reached_[line] = !row.heap_only();
        continue;
      }
      to_follow_[follow_++] = line;
      if (asks_ == Asks::kNo && !is_known(row)) return Errc::kNotFound;
      if (statuses) GCL_TRY(statuses->before(line, row));
      bool mine;
      auto life = liveness(txns_, row, &mine, &never_[line]);  // one answer says both (heap.judged-once)
      if (!life) return life.error();
      life_[line] = *life;
      recently_dead_ += *life == Liveness::kRecentlyDead;
      if (*life != Liveness::kLive) continue;
      live_creator_ = row.creator;
      if (row.creator.kind() == RowTxnKind::kInserted) hint_[hints_++] = line;
    }
    const std::span<const uint16_t> others{to_follow_, follow_};
    for (const uint16_t line : others) {
      const Line pointer = view_.line(line);
      if (!pointer.normal() && leads_to_untouched(pointer)) continue;
      if (!pointer.normal() || !view_.row_header_at(pointer).heap_only()) GCL_TRY(plan_chain(line));
    }
    // Versions of aborted updates: no chain leads to them, no index entry points to them.
    for (const uint16_t line : others)
      if (!reached_[line] && never_[line] && view_.row_header(line).heap_only()) remove(line, Line::unused());
    return {};
  }

  uint32_t removed() const { return removed_; }
  // Whether a later horizon may allow to remove more.
  bool waits_for_horizon() const { return recently_dead_ != 0; }
  // What the largest of the removed rows leaves free.
  Hole largest_hole() const { return largest_hole_; }
  // Live rows whose creator's status had to be asked for.
  std::span<const uint16_t> hints() const { return {hint_, hints_}; }

  // The page as it will be: header and line pointers, and the rows if they are moved together.
  void write(std::byte* to, bool compact) const {
    const PageHeader& header = view_.header();
    uint16_t lines = view_.lines();
    while (lines > 0 && after_[lines].state() == LineState::kUnused) --lines;
    Line pointers[kLinesMax + 1];
    std::copy(after_, after_ + lines + 1, pointers);
    std::memcpy(to, &header, compact ? coherence::kPageSize : sizeof header);
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

  // Whether the chain of a redirected line pointer is one such row.
  bool leads_to_untouched(Line redirect) const {
    const uint32_t line = redirect.offset();
    return line >= 1 && line <= view_.lines() && untouched_[line];
  }

  // Live and not ended: most rows are, so this is decided without a status look-up.
  bool is_untouched(const RowHeader& row) const {
    constexpr uint32_t kLives = 1u << int(RowTxnKind::kFrozen) | 1u << int(RowTxnKind::kCommitted);
    return !row.ended() && (row.creator.is_one_of(kLives) || row.creator == live_creator_);
  }

  // Whether liveness() and is_successor() have nothing to ask for.
  bool is_known(const RowHeader& row) const {
    const bool made = row.creator.kind() == RowTxnKind::kInserted, ended = row.ended();
    const auto keep = [&](TxnId id) { return txns_.current().is_mine(id) || txns_.keep_known(id); };
    return (!made || keep(row.creator.id())) && (!ended || keep(row.deleter.id())) &&
           (!made || !ended || txns_.are_kept(row.creator.id(), row.deleter.id()));
  }

  void remove(uint16_t line, Line to) {
    if (after_[line].normal()) {
      ++removed_;
      if (const uint32_t bytes = align8(after_[line].bytes()); bytes > largest_hole_.bytes)
        largest_hole_ = {after_[line].offset(), bytes};
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
      if (asks_ == Asks::kNo && !is_known(row)) return Errc::kNotFound;  // what a later row needed has its place
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
  Asks asks_;
  uint16_t recently_dead_ = 0;
  Line after_[kLinesMax + 1];
  RowTxn live_creator_{};  // of the row last found live
  static_assert(Liveness{} == Liveness::kLive);
  Liveness life_[kLinesMax + 1] = {};
  bool untouched_[kLinesMax + 1] = {};
  bool never_[kLinesMax + 1] = {};
  bool reached_[kLinesMax + 1] = {};
  uint32_t removed_ = 0;
  Hole largest_hole_;
  uint16_t hints_ = 0;
  uint16_t hint_[kLinesMax];
  uint16_t follow_ = 0;
  uint16_t to_follow_[kLinesMax];  // rows that were changed, and redirected line pointers
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

namespace {

constexpr int kHeadsTries = 3;  // beside a writer; then the page is copied

// Header, line pointers, and of each row its header: a third of the bytes.  False: the page cannot be read that way.
bool copy_heads(const bufmgr::OptimisticGuard& page, std::byte* to) {
  constexpr uint32_t kHead = align8(kRowHeaderBytes);
  page.copy(0, to, bufmgr::kPageBody);
  const HeapPage view(to);
  const uint32_t lower = view.header().lower;
  if (!view.is_heap() || lower < bufmgr::kPageBody || lower > HeapPage::line_offset(kLinesMax + 1)) return false;
  page.copy(bufmgr::kPageBody, to + bufmgr::kPageBody, lower - bufmgr::kPageBody);
  for (uint16_t n = 1, lines = view.lines(); n <= lines; ++n) {
    const Line line = view.line(n);
    if (!line.normal()) continue;
    if (!line.sane() || line.offset() > coherence::kPageSize - kHead) return false;
    page.copy(line.offset(), to + line.offset(), kHead);
  }
  return page.validate();
}

}  // namespace

// What a plan needs of the page: of the rows their headers, or (`rows`) all.
Status Heap::copy_to_plan(PageId page, bool rows, std::byte* to) {
  for (int i = 0; !rows && i < kHeadsTries; ++i) {
    auto optimistic = txns_.pool().fix_optimistic(txns_.session(), page);
    if (!optimistic)
      break;  // a page that is held can be copied (bufmgr.held-page-copied); of others, the copy says why
    if (copy_heads(*optimistic, to)) return {};
  }
  return txns_.pool().copy_parts(txns_.session(), page, to);
}

Status Heap::plan_prune(PageId page, uint32_t wanted, PrunedPage* to) {
  GCL_TRY(plan_prune_of(page, wanted, false, to));
  return to->rows_moved ? plan_prune_of(page, wanted, true, to) : Status();
}

// Without `rows`, a plan to move them is none: it says only that they are to be moved.
Status Heap::plan_prune_of(PageId page, uint32_t wanted, bool rows, PrunedPage* to) {
  to->version = 0;
  to->rows_moved = false;
  alignas(8) std::byte copy[coherence::kPageSize];
  GCL_TRY(copy_to_plan(page, rows, copy));
  if (!HeapPage(copy).is_heap()) return {};
  Plan plan(txns_, copy, Plan::Asks::kYes);
  GCL_TRY(plan.make());
  // The next prune of the page, and readers of these rows, need not ask again.
  if (!plan.hints().empty()) write_hints(page, copy, plan.hints().data(), int(plan.hints().size()));
  plan.write(to->bytes, false);
  to->removed = plan.removed();
  const HeapPage before(copy), pruned(to->bytes);
  to->line = pruned.free_line();
  to->place = wanted != 0 ? place_on(before, pruned, to->line, plan.largest_hole(), wanted) : 0;
  to->rows_moved = is_to_compact(pruned, to->line, to->place, wanted);
  if (to->rows_moved && !rows) return {};
  if (to->rows_moved) {
    plan.write(to->bytes, true);
    to->line = pruned.free_line();
    to->place = pruned.place_for(to->line, wanted);
  }
  if (to->removed == 0 && !to->rows_moved) return {};
  to->version = before.header().version;
  stop_at(txns_.session(), StopPoint::kHeapPrunePlanned);
  return {};
}

// heap.room-at-once
Heap::RoomHere Heap::room_here(ExclusiveGuard& page, uint32_t wanted, bool fresh, PrunedPage* to) {
  to->version = 0;
  to->rows_moved = false;
  Plan plan(txns_, page.bytes(), Plan::Asks::kNo);
  if (!plan.make()) return RoomHere::kUnknown;
  write_hints_here(page, plan.hints());
  const bool may_grow = !fresh && plan.waits_for_horizon();
  to->removed = plan.removed();
  if (may_grow && 2 * to->removed < page.header().reserved) return RoomHere::kStale;
  const HeapPage before(page.bytes()), pruned(to->removed != 0 ? to->bytes : page.bytes());
  if (to->removed != 0) plan.write(to->bytes, false);
  to->line = pruned.free_line();
  to->place = place_on(before, pruned, to->line, plan.largest_hole(), wanted);
  if (may_grow && to->place == 0) return RoomHere::kStale;
  if (is_to_compact(pruned, to->line, to->place, wanted)) return RoomHere::kUnknown;
  if (to->removed == 0) return RoomHere::kNone;
  to->version = page.header().version;
  return RoomHere::kFound;
}

// Where many versions are superseded, they were so lately: a plan by the horizon that was published last would find
// most of them needed, and be made in vain.
Status Heap::plan_room(PageId page, uint32_t wanted, uint32_t superseded, PrunedPage* to) {
  const bool fresh = wanted != 0 && superseded >= kManySuperseded;
  if (fresh) GCL_TRY(txns_.refresh_horizon());
  GCL_TRY(plan_prune(page, wanted, to));
  if (wanted == 0 || fresh) return {};
  const bool enough = to->version != 0 && !to->rows_moved && 2 * to->removed >= superseded && to->place != 0;
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
    if (!guard && guard.error() == Errc::kHeld) return 0u;  // serializable.housekeeping-skips
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
