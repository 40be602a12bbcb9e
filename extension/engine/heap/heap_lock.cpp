// Locking rows (the design: rules.md, "Row locks").
#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/version.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine {

// What judge() could not decide: learns, waits, or finds lock pages or makes room there.  REQUIRES: no guard held.
Status Heap::resolve(const UpdateCheck& check, const Holders& holders, Facts& facts, WaitFor why) {
  stop_at(txns_.session(), StopPoint::kHeapRowJudged);
  switch (check.kind) {
    case UpdateCheck::kAsk:
      if (holders.cells)
        for (TxnId id : holders.cells->unknown)
          if (id != check.id) GCL_TRY(facts.learn(txns_, id));
      return facts.learn(txns_, check.id);
    case UpdateCheck::kCells:
      if (check.entries != 0) return cells_.make_room(check.block, place_of(check.block), check.entries);
      if (auto found = cells_.find(check.block, place_of(check.block)); !found)
        return found.error() == Errc::kNotFound ? Errc::kCorrupt : found.error();  // a flagged row without lock pages
      return {};
    default:
      facts.forget();
      return txns_.waiter().wait_for(check.id, why);
  }
}

Status Heap::resolve_queued(RowQueuePosition& queue, Tid tid, const UpdateCheck& check, const Holders& holders,
                            Facts& facts, WaitFor why) {
  if (check.kind == UpdateCheck::kWait && holders.mine < 0) {  // heap.holder-skips-queue
    if (holders.place == 0) {
      auto waited = queue.enter(tid);
      if (!waited) return waited.error();
      if (*waited) {
        facts.forget();
        return {};
      }
    }
    const bool elsewhere = check.id.node() != txns_.node();
    if (elsewhere && queue.loses_again()) GCL_TRY(book(tid, queue.mode(), facts));
  }
  return resolve(check, holders, facts, why);
}

// A session that must wait may have a lock of its own in a cell that was not read (heap.holder-skips-queue).
Status Heap::judge_own_cells(Tid tid, Holders* holders, UpdateCheck* check) {
  if (!cells_.known(tid.block).valid()) {
    *check = {.kind = UpdateCheck::kCells, .block = tid.block};
    return {};
  }
  std::vector<Locker> recorded;
  GCL_TRY(cells_.read(tid.block, tid.offset, &recorded));
  for (const Locker& locker : recorded) {
    if (!txns_.current().is_mine(locker.id)) continue;
    if (locker.booked())
      holders->place = locker.place;
    else
      holders->mine_too(locker.strongest());
  }
  return {};
}

Status Heap::judge_cells(const RowHeader& row, Tid tid, const WantedLock& wanted, const Facts& facts, Holders* holders,
                         UpdateCheck* check) {
  if (!cells_.known(tid.block).valid()) {
    *check = {.kind = UpdateCheck::kCells, .block = tid.block};
    return {};
  }
  std::vector<Locker> recorded;
  GCL_TRY(cells_.read(tid.block, tid.offset, &recorded));
  *check = judge_recorded(txns_, facts, row, tid, wanted, recorded, holders);
  return {};
}

// One version that is to be locked.
struct Heap::LockTry {
  Tid tid;
  WantedLock wanted;
  TxnId id;  // of the locker
  Facts* facts;
  TxnId creator{};        // if valid: a row by another creator, as far as its word says that, is a stranger
  RowTxn newer_locked{};  // the deleter word whose successors have been locked
  // found
  RowHeader row{};  // creator kNone: there is none, or a stranger
  PageId page{};    // its
  Holders holders{};
  UpdateCheck check{};
  RowPlace place() const { return {page, tid.offset}; }
};

// Judges the row and locks it if it may.  A row that this transaction made needs no mark, as no other can end it before
// this one ends; but FOR UPDATE of one must keep FOR KEY SHARE out, which reaches it through the version it replaced.
Status Heap::lock_once(LockTry& lock, std::byte* to, uint32_t* bytes) {
  auto nothing_there = [&]() -> Status {
    lock.row = {};
    lock.check = {.kind = UpdateCheck::kConflict, .outcome = no_such_row(lock.tid)};
    return {};
  };
  auto page = page_of(lock.tid.block);
  if (!page) return page.error() == Errc::kNotFound ? nothing_there() : Status{page.error()};
  lock.page = *page;
  GCL_TRY(hold_to_write(*page, bufmgr::part(lock.tid.offset)));
  MiniTransaction change(txns_.pool(), txns_.session());
  GCL_TRY(change.reserve(kLogForHeader + kLogForLock));
  auto guard = txns_.pool().fix_exclusive(txns_.session(), *page, bufmgr::Others::kOfOtherParts);
  if (!guard) return guard.error();
  if (!line_is_row(*guard, lock.tid.offset)) return nothing_there();
  HeapPage view(guard->bytes());
  const RowHeader& row = lock.row = view.row_header(lock.tid.offset);
  bool by_id = row.creator.kind() == RowTxnKind::kInserted;
  if (lock.creator.valid() && (by_id ? row.creator.id() != lock.creator : lock.wanted.newer)) return nothing_there();
  GCL_TRY(judge_version(row, *page, lock.tid, lock.wanted, *lock.facts, &lock.holders, &lock.check));
  if (lock.check.kind != UpdateCheck::kGo) return {};
  const bool made = is_own(txns_.current(), row);
  if (!lock.holders.has(lock.wanted.mode) && !(made && lock.wanted.mode != RowLock::kExclusive)) {
    if (lock.holders.updating && !lock.wanted.newer && row.deleter != lock.newer_locked) {
      lock.check.kind = UpdateCheck::kNewer;
      return {};
    }
    GCL_TRY(record_lock(lock, *guard, change));
    if (lock.check.kind != UpdateCheck::kGo) return {};
  }
  if (to != nullptr) {
    *bytes = view.line(lock.tid.offset).bytes();
    std::memcpy(to, view.row(lock.tid.offset), *bytes);
  }
  return {};
}

// In the deleter word or, where another transaction has that, or a level that may be left alone, in a lock cell.  The
// check says if there is no room.
Status Heap::record_lock(LockTry& lock, ExclusiveGuard& page, MiniTransaction& change) {
  const Holders& holders = lock.holders;
  RowHeader row = lock.row;
  // Another's version, whose end was rolled back while its maker runs (heap.note-of-this-version).
  const bool makers = lock.wanted.newer && row.ended() && !is_own(txns_.current(), row);
  if (!holders.word_is_others() && !holders.word_needs_cell(lock.id) && !makers) {
    RowLock mode = lock.wanted.mode;
    if (holders.word_is_mine && holders.word.id >= lock.id) mode = std::max(mode, holders.word.mode);
    // The ender was rolled back: now the word is the maker's again (heap.word-has-one-use).
    if (row.ended()) row.set_command(combo_commands(txns_.current(), row, lock.place()).made);
    row.deleter = RowTxn::lock(mode, lock.id, holders.outer_for(lock.id));
    uint8_t flags = uint8_t(row.flags() & ~(kChainUpdated | kHasLockers));
    row.set(lock.tid.offset, row.natts(), uint8_t(flags | (holders.recorded() ? kHasLockers : 0)));
    change.join(page);
    put_ending(change, page, lock.tid.offset, row);
    change.commit();
    return {};
  }
  return put_in_cell(lock.tid, row, {lock.id, lock.wanted.mode, {}}, holders, page, change, &lock.check);
}

// A lock of our transaction.  The check says if there is no room.
Status Heap::put_in_cell(Tid tid, RowHeader row, const Locker& locker, const Holders& holders, ExclusiveGuard& page,
                         MiniTransaction& change, UpdateCheck* check) {
  std::vector<Locker> live(holders.others().begin(), holders.others().end());
  for (const Locker& own : holders.own())
    if (own.id != locker.id) live.push_back(own);
  live.insert(live.end(), holders.booked().begin(), holders.booked().end());
  CellWriter cells;
  auto open = cells.open(cells_, tid.block, {{tid.offset, live, {&locker, 1}}});
  if (!open) return open.error();
  if (!*open) {
    *check = {.kind = UpdateCheck::kCells, .block = tid.block, .entries = 1};
    return {};
  }
  if (!row.has_lockers()) {
    change.join(page);
    row.set(row.next_offset(), row.natts(), uint8_t(row.flags() | kHasLockers));
    put_ending(change, page, tid.offset, row);
  }
  cells.write(change);
  change.commit();
  return {};
}

// Locks the versions that a running update has made of origin's row, one after another, as far as there are.  Anything
// but kGo: resolve it, then judge the origin again.
Result<UpdateCheck> Heap::lock_newer(const LockTry& origin, Facts& facts) {
  LockTry lock{.tid = origin.row.next(origin.tid.block), .wanted = origin.wanted, .id = origin.id, .facts = &facts};
  lock.wanted.newer = true;
  lock.creator = origin.row.deleter.id();
  for (;;) {
    GCL_TRY(lock_once(lock, nullptr, nullptr));
    switch (lock.check.kind) {
      case UpdateCheck::kGo:
        if (!lock.holders.updating) return UpdateCheck{};
        lock.tid = lock.row.next(lock.tid.block);
        lock.creator = lock.row.deleter.id();
        break;
      case UpdateCheck::kConflict:
        // While the updater runs, what it made is there, and no other ends it: so the updater has ended.
        return UpdateCheck{.kind = UpdateCheck::kAsk, .id = origin.row.deleter.id()};
      case UpdateCheck::kWait:
        return lock.check;
      default:
        GCL_TRY(resolve(lock.check, lock.holders, facts, WaitFor::kLock));
    }
  }
}

// Behind an update that was followed, a version may be of the own transaction already: a function or a trigger of the
// command has been there.  As in PostgreSQL, what it has ended is no conflict but a step further.
Heap::OwnStep Heap::own_step(const LockTry& lock) const {
  const Transaction& me = txns_.current();
  const RowHeader& row = lock.row;
  if (row.ended() && me.is_mine(row.deleter.id())) return row.updated() ? OwnStep::kFollow : OwnStep::kGone;
  const bool later = is_own(me, row) && combo_commands(me, row, lock.place()).made >= lock.wanted.command;
  return later ? OwnStep::kMadeLater : OwnStep::kNone;
}

Result<LockOutcome> Heap::lock(const LockRequest& request, std::byte* to) {
  auto id = txns_.id_for_write();
  if (!id) return id.error();
  LockOutcome outcome{.tid = request.tid};
  RowHeader before{};  // traversed: the version that led to this one
  Facts facts;
  LockTry lock{.tid = request.tid, .wanted = {request.command, request.mode}, .id = *id, .facts = &facts};
  RowQueuePosition queue(txns_.waiter(), table_, request.mode);
  for (;;) {
    GCL_TRY(lock_once(lock, to, &outcome.bytes));
    UpdateCheck& check = lock.check;
    if (outcome.traversed) {
      // The place may hold a stranger by now; then the row we followed is gone for good.
      auto same =
          lock.row.creator.kind() == RowTxnKind::kNone ? Result<bool>(false) : is_successor(txns_, before, lock.row);
      if (!same) return same.error();
      if (!*same) {
        outcome.row = {.result = RowResult::kDeleted, .conflict = {.next = outcome.tid, .by = before.deleter.id()}};
        return outcome;
      }
    }
    if (check.kind == UpdateCheck::kNewer) {
      auto newer = lock_newer(lock, facts);
      if (!newer) return newer.error();
      if (newer->kind == UpdateCheck::kGo) {
        lock.newer_locked = lock.row.deleter;
        continue;
      }
      check = *newer;
      lock.holders.cells.reset();  // what is unknown concerns the newer version
    }
    switch (check.kind) {
      case UpdateCheck::kGo:
        return outcome;
      case UpdateCheck::kConflict: {
        const OwnStep own = outcome.traversed ? own_step(lock) : OwnStep::kNone;
        if (own == OwnStep::kGone) check.outcome.result = RowResult::kDeleted;
        if (own == OwnStep::kGone && lock.row.moved())
          check.outcome = {.result = RowResult::kUpdated, .conflict = {.moved = true}};
        if (own == OwnStep::kFollow) check.outcome.result = RowResult::kUpdated;
        if (own == OwnStep::kMadeLater)
          check.outcome = {
              .result = RowResult::kSelfModified,
              .conflict = {.next = lock.tid, .cmax = combo_commands(txns_.current(), lock.row, lock.place()).made}};
        const RowConflict& conflict = check.outcome.conflict;
        if (!request.follow || check.outcome.result != RowResult::kUpdated || conflict.moved ||
            (request.same_key && conflict.key_changed)) {
          outcome.row = check.outcome;
          return outcome;
        }
        before = lock.row;
        outcome.tid = lock.tid = lock.row.next(lock.tid.block);
        outcome.traversed = true;
        lock.creator = before.deleter.id();
        stop_at(txns_.session(), StopPoint::kHeapChainFollowed);
        break;
      }
      case UpdateCheck::kWait:
        if (request.policy != WaitPolicy::kBlock) {
          outcome.row = check.outcome;
          outcome.row.result = RowResult::kWouldBlock;
          return outcome;
        }
        [[fallthrough]];
      default:
        GCL_TRY(resolve_queued(queue, lock.tid, check, lock.holders, facts, WaitFor::kLock));
    }
  }
}

}  // namespace engine
