// Deleting, updating and locking rows.  All three: look at the row under its page's exclusive guard with what is known,
// leave the guard to learn or to wait, and look again (H5).
#include <algorithm>
#include <utility>

#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_change.hpp"

namespace engine {

void compose_row(const RowImage& row, TxnId creator, uint32_t command, Tid at, uint8_t flags, std::byte* to);

namespace {

constexpr uint16_t kPruneEvery = 32;  // superseded versions on a page that make an update look for dead ones

bool line_is_row(const ExclusiveGuard& page, uint16_t line) {
  HeapPage view(page.bytes());
  return line >= 1 && line <= view.lines() && view.line(line).normal();
}

RowOutcome no_such_row(Tid tid) { return {.result = RowResult::kInvisible, .conflict = {.next = tid}}; }

// The header a row has once `kind` by `id` at `command` ends it, or locks it.
RowHeader ended(RowHeader row, StampKind kind, TxnId id, uint32_t command, Tid next, bool chained, bool holds_lock) {
  bool same_id = row.deleter.kind() == StampKind::kLocked && row.deleter.id() == id;
  bool outer = holds_lock && (!same_id || (row.cmax & kOuterLock));
  row.deleter = Stamp::of(kind, id);
  row.cmax = command | (outer ? kOuterLock : 0);
  row.next_block = next.block;
  row.set(next.offset, row.natts(), uint8_t((row.flags() & ~kChainUpdated) | (chained ? kChainUpdated : 0)));
  return row;
}

}  // namespace

// What judge() could not decide: learns, or waits.  REQUIRES: no guard held.
Status Heap::settle(const Verdict& verdict, Facts& facts, WaitFor why) {
  if (verdict.kind == Verdict::kAsk) return facts.learn(txns_, verdict.id);
  facts.forget();
  return txns_.waiter().wait_for(verdict.id, why);
}

// Whether the crosscheck snapshot (of a foreign key's action) sees the row.  Once is enough: what it sees of a version
// that nobody ends cannot change, and if somebody does, the verdict does.
Result<bool> Heap::crosschecked(const RowHeader& row, const Snapshot** crosscheck) {
  const Snapshot* snapshot = std::exchange(*crosscheck, nullptr);
  return visible(txns_, row, *snapshot, nullptr);
}

Result<RowOutcome> Heap::remove(Tid tid, uint32_t command, bool wait, const Snapshot* crosscheck, bool moves) {
  auto id = txns_.id_for_write();
  if (!id) return id.error();
  auto page = page_of(tid.block);
  if (!page) return page.error() == Errc::kNotFound ? Result<RowOutcome>(no_such_row(tid)) : page.error();
  for (Facts facts;;) {
    Verdict verdict;
    RowHeader row;
    {
      MiniTransaction change(txns_.pool(), txns_.session());
      GCL_TRY(change.reserve(2 * kLogForStamp));
      auto guard = txns_.pool().fix_exclusive(txns_.session(), *page);
      if (!guard) return guard.error();
      if (!line_is_row(*guard, tid.offset)) return no_such_row(tid);
      row = HeapPage(guard->bytes()).row_header(tid.offset);
      verdict = judge(txns_, facts, row, tid, command);
      if (verdict.kind == Verdict::kConflict || (verdict.kind == Verdict::kWait && !wait)) return verdict.outcome;
      if (verdict.kind == Verdict::kGo && crosscheck == nullptr) {
        change.join(*guard);
        put_ending(change, *guard, tid.offset,
                   ended(row, StampKind::kDeleted, *id, command, moves ? Tid{} : tid, false, verdict.holds_lock));
        count_superseded(change, *guard);
        change.commit();
        return RowOutcome{};
      }
    }
    if (verdict.kind == Verdict::kGo) {
      auto seen = crosschecked(row, &crosscheck);
      if (!seen) return seen.error();
      if (!*seen) return RowOutcome{.result = RowResult::kUpdated, .conflict = {.next = tid}};
      continue;
    }
    GCL_TRY(settle(verdict, facts, WaitFor::kDelete));
  }
}

// One attempt of an update under guards.
struct Heap::UpdateStep {
  enum Next : uint8_t { kDone, kJudge, kNoRoom, kPrune, kMakeRoom, kTargetFull } next = kJudge;
  Verdict verdict;
  RowHeader row;
  uint32_t target_room = 0;
};

Result<UpdateOutcome> Heap::update(const UpdateRequest& request) {
  if (kRowHeaderBytes + request.row.body_bytes > kRowBytesMax) return Errc::kTooLarge;
  auto id = txns_.id_for_write();
  if (!id) return id.error();
  const Snapshot* crosscheck = request.crosscheck;
  bool elsewhere = false;
  bool pruned = false;
  for (Facts facts;;) {
    UpdateOutcome outcome;
    if (elsewhere) GCL_TRY(ensure_target(kRowHeaderBytes + request.row.body_bytes));
    if (elsewhere && target_ == request.tid.block) {
      GCL_TRY(give_up_target(0, kRowHeaderBytes + request.row.body_bytes));
      continue;
    }
    auto step = update_once(request, *id, facts, elsewhere, crosscheck == nullptr, pruned, &outcome);
    if (!step) return step.error();
    switch (step->next) {
      case UpdateStep::kDone:
        return outcome;
      case UpdateStep::kMakeRoom:
        GCL_TRY(txns_.refresh_horizon());
        [[fallthrough]];
      case UpdateStep::kPrune: {
        uint32_t wanted = step->next == UpdateStep::kMakeRoom ? kRowHeaderBytes + request.row.body_bytes : 0;
        auto removed = prune(request.tid.block, wanted);
        if (!removed) return removed.error();
        pruned = true;
        break;
      }
      case UpdateStep::kNoRoom:
        elsewhere = true;
        break;
      case UpdateStep::kTargetFull:
        GCL_TRY(give_up_target(step->target_room, kRowHeaderBytes + request.row.body_bytes));
        break;
      case UpdateStep::kJudge:
      default: {
        const Verdict& verdict = step->verdict;
        if (verdict.kind == Verdict::kConflict || (verdict.kind == Verdict::kWait && !request.wait))
          return UpdateOutcome{.row = verdict.outcome};
        if (verdict.kind != Verdict::kGo) {
          GCL_TRY(settle(verdict, facts, WaitFor::kUpdate));
          break;
        }
        auto seen = crosschecked(step->row, &crosscheck);
        if (!seen) return seen.error();
        if (!*seen) return UpdateOutcome{.row = {.result = RowResult::kUpdated, .conflict = {.next = request.tid}}};
      }
    }
  }
}

Result<Heap::UpdateStep> Heap::update_once(const UpdateRequest& request, TxnId id, const Facts& facts, bool elsewhere,
                                           bool may_change, bool pruned, UpdateOutcome* outcome) {
  auto& pool = txns_.pool();
  auto& session = txns_.session();
  uint32_t bytes = kRowHeaderBytes + request.row.body_bytes;
  UpdateStep step;
  auto page = page_of(request.tid.block);
  if (!page && page.error() == Errc::kNotFound) {
    step.verdict = {.kind = Verdict::kConflict, .outcome = no_such_row(request.tid)};
    return step;
  }
  if (!page) return page.error();
  PageId other = *page;
  if (elsewhere) {
    auto target = page_of(target_);
    if (!target) return target.error();
    other = *target;
  }
  alignas(8) std::byte image[coherence::kPageSize];
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(log_for_row(bytes) + 2 * kLogForStamp));
  // Two heap pages are latched in the order of their ids.
  auto first = pool.fix_exclusive(session, std::min(*page, other));
  if (!first) return first.error();
  ExclusiveGuard second;
  if (elsewhere) {
    auto guard = pool.fix_exclusive(session, std::max(*page, other));
    if (!guard) return guard.error();
    second = guard.take();
  }
  bool old_is_first = !elsewhere || *page < other;
  ExclusiveGuard& old_page = old_is_first ? *first : second;
  ExclusiveGuard& new_page = !elsewhere ? *first : old_is_first ? second : *first;

  if (!line_is_row(old_page, request.tid.offset)) {
    step.verdict = {.kind = Verdict::kConflict, .outcome = no_such_row(request.tid)};
    return step;
  }
  step.row = HeapPage(old_page.bytes()).row_header(request.tid.offset);
  step.verdict = judge(txns_, facts, step.row, request.tid, request.command);
  if (step.verdict.kind != Verdict::kGo || !may_change) return step;

  uint16_t superseded = old_page.header().reserved;
  uint16_t line = line_for(new_page);
  uint32_t place = place_for(new_page, line, bytes);
  if (!elsewhere && !pruned && superseded != 0 && (place == 0 || superseded % kPruneEvery == 0)) {
    step.next = place == 0 ? UpdateStep::kMakeRoom : UpdateStep::kPrune;
    return step;
  }
  if (place == 0) {
    step.next = elsewhere ? UpdateStep::kTargetFull : UpdateStep::kNoRoom;
    step.target_room = room(new_page);
    return step;
  }
  bool chained = !elsewhere && !request.indexed_changed;
  Tid tid{elsewhere ? target_ : request.tid.block, line};
  compose_row(request.row, id, request.command, tid, chained ? kHeapOnly : 0, image);
  change.join(*first);
  if (elsewhere) change.join(second);
  format_if_unused(change, new_page, uint32_t(relation_.header.number()));
  put_row(change, new_page, line, place, image, bytes);
  put_ending(change, old_page, request.tid.offset,
             ended(step.row, request.key_changed ? StampKind::kUpdatedKey : StampKind::kUpdated, id, request.command,
                   tid, chained, step.verdict.holds_lock));
  count_superseded(change, old_page);
  change.commit();
  outcome->tid = tid;
  outcome->chained = chained;
  step.next = UpdateStep::kDone;
  return step;
}

Result<LockOutcome> Heap::lock(const LockRequest& request, std::byte* to) {
  if (request.mode < RowLock::kNoKeyExclusive) return Errc::kIncompatible;
  auto id = txns_.id_for_write();
  if (!id) return id.error();
  LockOutcome outcome{.tid = request.tid};
  RowHeader before{};  // traversed: the version that led to this one
  for (Facts facts;;) {
    auto page = page_of(outcome.tid.block);
    if (!page && page.error() != Errc::kNotFound) return page.error();
    Verdict verdict{.kind = Verdict::kConflict, .outcome = no_such_row(outcome.tid)};
    RowHeader row{};
    if (page) {
      auto locked = lock_once(*page, request, *id, facts, before, to, &outcome, &row, &verdict);
      if (!locked) return locked.error();
    }
    if (outcome.traversed) {
      // The place may hold a stranger by now; then the row we followed is gone for good.
      auto same = row.creator.kind() == StampKind::kNone ? Result<bool>(false) : is_successor(txns_, before, row);
      if (!same) return same.error();
      if (!*same) {
        outcome.row = {.result = RowResult::kDeleted, .conflict = {.next = outcome.tid, .by = before.deleter.id()}};
        return outcome;
      }
    }
    switch (verdict.kind) {
      case Verdict::kGo:
        return outcome;
      case Verdict::kConflict:
        if (!request.follow || verdict.outcome.result != RowResult::kUpdated || verdict.outcome.conflict.moved) {
          outcome.row = verdict.outcome;
          return outcome;
        }
        before = row;
        outcome.tid = row.next();
        outcome.traversed = true;
        break;
      case Verdict::kWait:
        if (request.policy != WaitPolicy::kBlock) {
          outcome.row = verdict.outcome;
          outcome.row.result = RowResult::kWouldBlock;
          return outcome;
        }
        [[fallthrough]];
      case Verdict::kAsk:
        GCL_TRY(settle(verdict, facts, WaitFor::kLock));
    }
  }
}

// Judges the row at outcome->tid and locks it if it may.  A row of our own making needs no mark: nobody else can end it
// before we do.
Status Heap::lock_once(PageId page, const LockRequest& request, TxnId id, const Facts& facts, const RowHeader& before,
                       std::byte* to, LockOutcome* outcome, RowHeader* row, Verdict* verdict) {
  uint16_t line = outcome->tid.offset;
  MiniTransaction change(txns_.pool(), txns_.session());
  GCL_TRY(change.reserve(kLogForStamp));
  auto guard = txns_.pool().fix_exclusive(txns_.session(), page);
  if (!guard) return guard.error();
  if (!line_is_row(*guard, line)) return {};
  HeapPage view(guard->bytes());
  RowHeader found = view.row_header(line);
  bool stranger =
      outcome->traversed && found.creator.kind() == StampKind::kInserted && found.creator.id() != before.deleter.id();
  if (stranger) return {};
  *row = found;
  *verdict = judge(txns_, facts, *row, outcome->tid, request.command);
  if (verdict->kind != Verdict::kGo) return {};
  bool mine = row->creator.kind() == StampKind::kInserted && txns_.current().is_mine(row->creator.id());
  bool enough = verdict->has_lock && (row->cmax & 3) >= uint32_t(request.mode);
  if (!mine && !enough) {
    change.join(*guard);
    put_ending(change, *guard, line,
               ended(*row, StampKind::kLocked, id, uint32_t(request.mode), outcome->tid, false, verdict->holds_lock));
    change.commit();
  }
  outcome->bytes = view.line(line).bytes();
  std::memcpy(to, view.row(line), outcome->bytes);
  return {};
}

}  // namespace engine
