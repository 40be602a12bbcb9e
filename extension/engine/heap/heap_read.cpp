// Reading rows: one row optimistically, pages by copy.
#include <algorithm>
#include <optional>

#include "extension/engine/heap/decision_wait.hpp"
#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_statuses.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine {

namespace {

constexpr int kOptimisticTries = 4;
constexpr int kVersionsMax = 4;  // of a chain that are looked at one by one; then the page is copied

bool not_found(Errc error) { return error == Errc::kNotFound; }

// A line pointer of a page seen optimistically; unused if the page has none of that number.
Line line_seen(const bufmgr::OptimisticGuard& page, uint16_t number) {
  constexpr uint32_t kFrom = offsetof(PageHeader, relation);
  struct Tail {
    uint32_t relation;
    PageType type;
    uint8_t lsn_node;
    uint16_t flags, lower, upper, special, reserved;
  };
  static_assert(kFrom % 8 == 0 && sizeof(Tail) == 16 && kFrom + offsetof(Tail, lower) == offsetof(PageHeader, lower));
  const auto header = page.get<Tail>(kFrom);
  bool there = header.type == PageType::kHeap && header.lower <= coherence::kPageSize && number >= 1 &&
               HeapPage::line_offset(number) < header.lower;
  return there ? page.get<Line>(HeapPage::line_offset(number)) : Line{};
}

// The line pointer an entry for `line` really begins at, or 0.
uint16_t chain_start(const HeapPage& page, uint16_t line) {
  if (line < 1 || line > page.lines()) return 0;
  Line at = page.line(line);
  if (at.state() == LineState::kRedirect) {
    auto target = uint16_t(at.offset());
    return target >= 1 && target <= page.lines() && page.line(target).normal() ? target : uint16_t{0};
  }
  return at.normal() && !page.row_header(line).heap_only() ? line : uint16_t{0};
}

// The next version of the chain on a copied page, or 0.
Result<uint16_t> chain_next(TxnSystem& txns, const HeapPage& page, const RowHeader& row) {
  uint16_t next = row.next_offset();
  if (!row.chain_goes_on() || next < 1 || next > page.lines() || !page.line(next).normal()) return uint16_t{0};
  RowHeader successor = page.row_header(next);
  if (!successor.heap_only()) return uint16_t{0};
  auto same = is_successor(txns, row, successor);
  if (!same) return same.error();
  return *same ? next : uint16_t{0};
}

// What the creator word may be replaced with, once the creator's status is known.
std::optional<RowTxn> hint_for(const TxnSystem& txns, RowTxn creator) {
  if (creator.kind() != RowTxnKind::kInserted) return std::nullopt;
  auto status = txns.known_status(creator.id());
  if (!status) return std::nullopt;
  if (status->aborted()) return RowTxn::of(RowTxnKind::kAborted);
  if (status->cts <= txns.horizon()) return RowTxn::of(RowTxnKind::kFrozen);
  return RowTxn::of(RowTxnKind::kCommitted, status->cts.value);
}

bool made_by(const RowHeader& row, TxnId id) {
  return row.creator.kind() == RowTxnKind::kInserted && row.creator.id() == id;
}

}  // namespace

Result<RowRead> Heap::fetch(Tid tid, const Snapshot& snapshot, std::byte* to, Intent intent) {
  return read_row(tid, false, snapshot, to, intent);
}

Result<RowRead> Heap::fetch_chain(Tid root, const Snapshot& snapshot, std::byte* to, Intent intent) {
  return read_row(root, true, snapshot, to, intent);
}

Result<RowRead> Heap::read_row(Tid tid, bool chain, const Snapshot& snapshot, std::byte* to, Intent intent) {
  auto page = page_of(tid.block);
  if (!page) return not_found(page.error()) ? Result<RowRead>(RowRead{}) : page.error();
  // What an entry leads to is its row's, and nobody else's; a version that is named by
  // itself may be one that nothing has led to (serializable.rows-are-parts).
  bufmgr::Parts parts = chain ? bufmgr::part(tid.offset) : bufmgr::kWholePage;
  GCL_TRY(hold_to_read(*page, snapshot, intent, parts));
  const bool holds = snapshot.strict && holds_reads_;
  Rereads reads(txns_);
  RowRead before;
  std::vector<std::byte> row_before;
  for (DecisionWait decision(txns_);;) {
    TxnId running{};
    reads.begin();
    auto read = read_once(*page, tid, chain, snapshot, to, intent, reads, &running);
    if (!read) return read;
    if (reads.again()) continue;
    if (holds && (reads.parts() & ~parts) != 0) {
      parts |= reads.parts();
      GCL_TRY(hold_to_read(*page, snapshot, intent, parts));
      continue;
    }
    if (!running.valid()) {
      if (read->found || !before.waited) return read;
      std::copy(row_before.begin(), row_before.end(), to);
      return before;
    }
    before = {.waited = true, .tid = read->tid, .bytes = read->bytes};
    row_before.assign(to, to + read->bytes);
    RowHeader row;
    std::memcpy(&row, to, sizeof row);
    GCL_TRY(decision.wait({.by = running, .tid = read->tid, .made = made_by(row, running)}));
  }
}

// The first versions one by one, without a shared write; the rest of a long chain on a copy of the page.
Result<RowRead> Heap::read_once(PageId page, Tid tid, bool chain, const Snapshot& snapshot, std::byte* to,
                                Intent intent, Rereads& reads, TxnId* running) {
  for (int i = 0; i < kOptimisticTries; ++i) {
    auto optimistic = txns_.pool().fix_optimistic(txns_.session(), page, intent);
    if (!optimistic && optimistic.error() == Errc::kHeld) break;  // bufmgr.held-page-copied
    if (!optimistic) return optimistic.error();
    auto read = read_versions(*optimistic, tid, chain, snapshot, to, reads, running);
    if (!read && read.error() == Errc::kRestart) continue;
    if (!read && read.error() == Errc::kWouldBlock) break;
    return read;
  }
  return read_copy(page, tid, chain, snapshot, to, reads, running);
}

// What was seen of the page is believed as long as that has not changed, whatever is asked in between.  kRestart: it
// has; kWouldBlock: the chain is long.
Result<RowRead> Heap::read_versions(const bufmgr::OptimisticGuard& page, Tid tid, bool chain, const Snapshot& snapshot,
                                    std::byte* to, Rereads& reads, TxnId* running) {
  uint16_t number = tid.offset;
  Line line = line_seen(page, number);
  const bool redirected = chain && line.state() == LineState::kRedirect;
  if (redirected) {
    number = uint16_t(line.offset());
    line = line_seen(page, number);
  }
  RowHeader before{};
  for (int i = 0; i < kVersionsMax; ++i) {
    if (!line.sane()) return page.validate() ? Result<RowRead>(RowRead{}) : Errc::kRestart;
    page.copy(line.offset(), to, line.bytes());
    if (!page.validate()) return Errc::kRestart;
    RowHeader row;
    std::memcpy(&row, to, sizeof row);
    if (i == 0 && chain && !redirected && row.heap_only()) return RowRead{};  // no entry is about it
    if (i > 0) {
      if (!row.heap_only()) return RowRead{};
      auto same = is_successor(txns_, before, row);
      if (!same || !*same) return same ? Result<RowRead>(RowRead{}) : same.error();
    }
    const bool known = row.creator.kind() != RowTxnKind::kInserted || txns_.known_status(row.creator.id()).has_value();
    auto seen = reads.sees(row, {page.id(), number}, snapshot, running);
    if (!seen) return seen.error();
    if (!known) write_hint(page.id(), number, line, row);
    if (*seen || running->valid()) return RowRead{.found = true, .tid = {tid.block, number}, .bytes = line.bytes()};
    if (!chain || !row.chain_goes_on()) return RowRead{};
    before = row;
    number = row.next_offset();
    line = line_seen(page, number);
  }
  return Errc::kWouldBlock;
}

Result<RowRead> Heap::read_copy(PageId page, Tid tid, bool chain, const Snapshot& snapshot, std::byte* to,
                                Rereads& reads, TxnId* running) {
  alignas(8) std::byte copy[coherence::kPageSize];
  GCL_TRY(txns_.pool().copy_parts(txns_.session(), page, copy));
  stop_at(txns_.session(), StopPoint::kHeapPageCopied);
  HeapPage view(copy);
  uint16_t line = chain                                                          ? chain_start(view, tid.offset)
                  : tid.offset <= view.lines() && view.line(tid.offset).normal() ? tid.offset
                                                                                 : uint16_t{0};
  while (line != 0) {
    RowHeader row = view.row_header(line);
    auto seen = reads.sees(row, {page, line}, snapshot, running);
    if (!seen) return seen.error();
    if (*seen || running->valid()) {
      std::memcpy(to, view.row(line), view.line(line).bytes());
      return RowRead{.found = true, .tid = {tid.block, line}, .bytes = view.line(line).bytes()};
    }
    if (!chain) break;
    auto next = chain_next(txns_, view, row);
    if (!next) return next.error();
    line = *next;
  }
  return RowRead{};
}

Result<bool> Heap::satisfies(Tid tid, const Snapshot& snapshot) {
  alignas(8) std::byte row[kRowBytesMax];
  auto read = fetch(tid, snapshot, row);
  if (!read) return read.error();
  return read->found;
}

Result<Tid> Heap::latest(Tid tid, const Snapshot& snapshot) {
  alignas(8) std::byte buffer[kRowBytesMax];
  Tid best = tid;
  RowHeader before{};
  for (bool first = true;; first = false) {
    auto read = fetch(tid, {.kind = SnapshotKind::kAny}, buffer);
    if (!read) return read.error();
    if (!read->found) return best;
    auto page = page_of(tid.block);
    if (!page) return page.error();
    if (const Status held = hold_to_read(*page, snapshot, Intent::kRead); !held) return held.error();
    RowHeader row;
    std::memcpy(&row, buffer, sizeof row);
    if (!first) {
      auto same = is_successor(txns_, before, row);
      if (!same) return same.error();
      if (!*same) return best;
    }
    auto seen = visible(txns_, row, {*page, tid.offset}, snapshot, nullptr);
    if (!seen) return seen.error();
    if (*seen) best = tid;
    const Tid next = row.next(tid.block);
    if (!row.updated() || next == tid) return best;
    before = row;
    tid = next;
    stop_at(txns_.session(), StopPoint::kHeapChainFollowed);
  }
}

// A chain of one version, without a copy of the page.  False: a copy is needed.
Result<bool> Heap::probe_alone(PageId page, Tid root, Rereads& reads, RowProbe* found) {
  auto optimistic = txns_.pool().fix_optimistic(txns_.session(), page);
  if (!optimistic && optimistic.error() == Errc::kHeld) return false;
  if (!optimistic) return optimistic.error();
  Line line = line_seen(*optimistic, root.offset);
  if (!line.sane()) return false;
  auto row = optimistic->get<RowHeader>(line.offset());
  if (!optimistic->validate() || row.heap_only() || row.chain_goes_on()) return false;
  TxnId running{};
  auto seen = reads.sees(row, {page, root.offset}, {.kind = SnapshotKind::kDirty}, &running);
  if (!seen) return seen.error();
  if (*seen || running.valid()) {
    *found = {.kind = running.valid() ? RowProbe::kRunning : RowProbe::kLive,
              .tid = root,
              .by = running,
              .made = made_by(row, running)};
    return true;
  }
  bool mine;
  auto life = liveness(txns_, row, &mine);
  if (!life) return life.error();
  found->dead_to_all = *life == Liveness::kDead;
  return true;
}

Result<RowProbe> Heap::probe(Tid root, bool learns) {
  auto page = page_of(root.block);
  if (!page) return not_found(page.error()) ? Result<RowProbe>(RowProbe{}) : page.error();
  const Snapshot held{.strict = learns && txns_.session().holding()};
  bufmgr::Parts parts = bufmgr::part(root.offset);
  GCL_TRY(hold_to_read(*page, held, Intent::kRead, parts));
  for (Rereads reads(txns_);;) {
    reads.begin();
    auto found = probe_once(*page, root, reads);
    if (!found) return found;
    if (held.strict && holds_reads_ && (reads.parts() & ~parts) != 0) {
      parts |= reads.parts();
      GCL_TRY(hold_to_read(*page, held, Intent::kRead, parts));
      continue;
    }
    if (!reads.again()) return found;
  }
}

Result<RowProbe> Heap::probe_once(PageId page, Tid root, Rereads& reads) {
  RowProbe found;
  auto alone = probe_alone(page, root, reads, &found);
  if (!alone) return alone.error();
  if (*alone) return found;
  alignas(8) std::byte copy[coherence::kPageSize];
  GCL_TRY(txns_.pool().copy_parts(txns_.session(), page, copy));
  HeapPage view(copy);
  uint16_t line = chain_start(view, root.offset);
  // A place that is unused, or another chain's, is nothing to conclude from.
  found.dead_to_all = line != 0 || (root.offset >= 1 && root.offset <= view.lines() &&
                                    view.line(root.offset).state() == LineState::kDead);
  while (line != 0) {
    RowHeader row = view.row_header(line);
    TxnId running{};
    auto seen = reads.sees(row, {page, line}, {.kind = SnapshotKind::kDirty}, &running);
    if (!seen) return seen.error();
    if (*seen || running.valid()) {
      found.kind = running.valid() ? RowProbe::kRunning : RowProbe::kLive;
      found.tid = {root.block, line};
      found.by = running;
      found.made = made_by(row, running);
      found.dead_to_all = false;
      return found;
    }
    bool mine;
    auto life = liveness(txns_, row, &mine);
    if (!life) return life.error();
    if (*life != Liveness::kDead) found.dead_to_all = false;
    auto next = chain_next(txns_, view, row);
    if (!next) return next.error();
    line = *next;
  }
  return found;
}

namespace {

// Whether a version is dead to all, by statuses that are known here: the read just before has learned the final ones.
Result<bool> known_dead(TxnSystem& txns, const RowHeader& row) {
  auto known = [&](TxnId id) { return txns.known_status(id).has_value(); };
  if (row.creator.kind() == RowTxnKind::kInserted && !known(row.creator.id())) return false;
  if (row.ended() && !known(row.deleter.id())) return false;
  bool mine;
  auto life = liveness(txns, row, &mine);
  if (!life) return life.error();
  return *life == Liveness::kDead;
}

}  // namespace

Result<bool> Heap::dead_to_all(Tid root) {
  auto page = page_of(root.block);
  if (!page) return not_found(page.error()) ? Result<bool>(false) : page.error();
  auto optimistic = txns_.pool().fix_optimistic(txns_.session(), *page);
  if (!optimistic && optimistic.error() == Errc::kHeld) return false;
  if (!optimistic) return optimistic.error();
  const Line first = line_seen(*optimistic, root.offset);
  const auto head = first.sane() ? optimistic->get<RowHeader>(first.offset()) : RowHeader{};
  if (!optimistic->validate() || first.state() == LineState::kUnused) return false;
  if (first.state() == LineState::kDead) return true;
  if (first.sane()) {
    if (head.heap_only()) return false;
    auto dead = known_dead(txns_, head);
    if (!dead || !*dead || !head.chain_goes_on()) return dead;
  }
  alignas(8) std::byte copy[coherence::kPageSize];
  GCL_TRY(txns_.pool().copy_parts(txns_.session(), *page, copy));
  HeapPage view(copy);
  uint16_t line = chain_start(view, root.offset);
  if (line == 0) return false;
  while (line != 0) {
    const RowHeader row = view.row_header(line);
    auto dead = known_dead(txns_, row);
    if (!dead || !*dead) return dead;
    auto next = chain_next(txns_, view, row);
    if (!next) return next.error();
    line = *next;
  }
  return true;
}

Status Heap::read_block(uint32_t block, const Snapshot& snapshot, PageRows& to, Intent intent) {
  auto page = page_of(block);
  if (!page) return page.error();
  to.block = block;
  GCL_TRY(hold_to_read(*page, snapshot, intent));
  Rereads reads(txns_);
  do {
    reads.begin();
    GCL_TRY(read_page(*page, snapshot, to, intent, reads));
  } while (reads.again());
  return {};
}

Status Heap::read_page(PageId page, const Snapshot& snapshot, PageRows& to, Intent intent, Rereads& reads) {
  to.count = 0;
  GCL_TRY(txns_.pool().copy_parts(txns_.session(), page, to.page, intent));
  stop_at(txns_.session(), StopPoint::kHeapPageCopied);
  HeapPage view(to.page);
  uint16_t hints[kLinesMax];
  int hint_count = 0;
  // A creator that has just been found committed before the snapshot: a page's rows tend to have one.  Its rows that
  // are not ended are seen, without asking.
  RowTxn seen_creator{};
  // A reader that looks for the newest learns each status behind its row (heap.commit-needs-younger-read).
  std::optional<PageStatuses> statuses;
  if (snapshot.kind == SnapshotKind::kMvcc) statuses.emplace(txns_, view);
  for (uint16_t line = 1, lines = view.lines(); line <= lines; ++line) {
    if (!view.line(line).normal()) continue;
    const RowHeader row = view.row_header(line);
    const bool inserted = row.creator.kind() == RowTxnKind::kInserted;
    if (row.creator == seen_creator && !row.ended()) {
      to.offset[to.count++] = line;
      if (inserted) hints[hint_count++] = line;
      continue;
    }
    if (statuses) GCL_TRY(statuses->before(line, row));
    auto seen = reads.sees(row, {page, line}, snapshot, nullptr);
    if (!seen) return seen.error();
    if (*seen) to.offset[to.count++] = line;
    if (*seen && snapshot.kind == SnapshotKind::kMvcc && !(inserted && txns_.current().is_mine(row.creator.id())))
      seen_creator = row.creator;
    if (inserted && txns_.known_status(row.creator.id())) hints[hint_count++] = line;
  }
  if (hint_count != 0) write_hints(page, to.page, hints, hint_count);
  return {};
}

// Calls describe(header, line, index in to.offset) for each.
template <class Describe>
Status Heap::list_versions(uint32_t block, PageRows& to, Describe describe) {
  to.block = block;
  to.count = 0;
  auto page = page_of(block);
  if (!page) return page.error();
  GCL_TRY(txns_.pool().copy_parts(txns_.session(), *page, to.page));
  HeapPage view(to.page);
  for (uint16_t line = 1; line <= view.lines(); ++line) {
    if (!view.line(line).normal()) continue;
    GCL_TRY(describe(view.row_header(line), RowPlace{*page, line}, to.count));
    to.offset[to.count++] = line;
  }
  return {};
}

Status Heap::all_versions(uint32_t block, PageRows& to, Liveness* live, bool* mine) {
  return list_versions(block, to, [&](const RowHeader& row, RowPlace, int index) -> Status {
    auto life = liveness(txns_, row, &mine[index]);
    if (!life) return life.error();
    live[index] = *life;
    return {};
  });
}

Status Heap::sample_block(uint32_t block, const Snapshot& seen, PageRows& to, AsOf* what) {
  return list_versions(block, to, [&](const RowHeader& row, RowPlace at, int index) -> Status {
    auto is = as_of(txns_, row, at, seen);
    if (!is) return is.error();
    what[index] = *is;
    return {};
  });
}

// An aborted update's link stays in the row while its line pointer goes to others: every step checks the creator.
Status Heap::roots_of(const PageRows& rows, uint16_t* roots) {
  HeapPage view(rows.page);
  std::fill(roots, roots + kLinesMax + 1, uint16_t{0});
  for (uint16_t root = 1; root <= view.lines(); ++root) {
    uint16_t line = chain_start(view, root);
    while (line != 0 && roots[line] == 0) {
      roots[line] = root;
      auto next = chain_next(txns_, view, view.row_header(line));
      if (!next) return next.error();
      line = *next;
    }
  }
  return {};
}

// Hints spare the next reader the status log.  Only where this node owns the page and no session works on it.
void Heap::write_hints(PageId page, const std::byte* copy, const uint16_t* lines, int count) {
  stop_at(txns_.session(), StopPoint::kHeapHintReady);
  auto guard = txns_.pool().try_shared(txns_.session(), page);
  if (!guard) return;
  for (int i = 0; i < count; ++i)
    if (!write_hint_in(*guard, lines[i], HeapPage(copy).line(lines[i]), HeapPage(copy).row_header(lines[i]))) return;
}

// REQUIRES: the lines are rows.
void Heap::write_hints_here(bufmgr::ExclusiveGuard& page, std::span<const uint16_t> lines) {
  const HeapPage view(page.bytes());
  for (const uint16_t line : lines)
    if (auto hint = hint_for(txns_, view.row_header(line).creator))
      page.set_hint(uint16_t(view.line(line).offset()), hint->raw);
}

void Heap::write_hint(PageId page, uint16_t number, Line line, const RowHeader& row) {
  if (!hint_for(txns_, row.creator)) return;
  stop_at(txns_.session(), StopPoint::kHeapHintReady);
  auto guard = txns_.pool().try_shared(txns_.session(), page);
  if (guard) (void)write_hint_in(*guard, number, line, row);
}

// Hints line `number` if it still is what it was when it was read.  False: this node may not hint the page.
bool Heap::write_hint_in(bufmgr::SharedGuard& page, uint16_t number, Line line, const RowHeader& row) {
  HeapPage now(page.bytes());
  if (number > now.lines() || now.line(number).raw != line.raw) return true;
  auto hint = hint_for(txns_, row.creator);
  // Others may hint it at the same moment, under shared guards of their own.
  uint64_t creator = __atomic_load_n(reinterpret_cast<const uint64_t*>(page.bytes() + line.offset()), __ATOMIC_RELAXED);
  if (!hint || creator != row.creator.raw) return true;
  return page.set_hint(uint16_t(line.offset()), hint->raw);
}

}  // namespace engine
