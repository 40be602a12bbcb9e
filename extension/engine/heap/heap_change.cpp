// Deleting and updating rows.  Both judge the row under its page's exclusive guard with what is known, leave the guard
// to learn or to wait, and judge again (engine.no-guard-in-wait).
#include <algorithm>
#include <utility>

#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_change.hpp"
#include "extension/engine/heap/prune.hpp"
#include "extension/engine/heap/version.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine {

void compose_row(const RowImage& row, TxnId creator, uint32_t command, Tid at, uint8_t flags, std::byte* to);

namespace {

constexpr uint16_t kPruneEvery = 32;  // superseded versions on a page that make an update look for dead ones

// More locks than this are not carried to a new version: the update waits for some of them to end.
constexpr size_t kCarriedMax = 200;

// How a version ends.
struct RowEnd {
  RowTxnKind kind;
  TxnId id;
  uint32_t command;
  Tid next{};  // invalid: it moves
  bool chained = false;
};

// The header that a version has then; what it has no room for is noted (heap.commands-noted-first).  kNoMemory: that
// could not be, and nothing has changed.  REQUIRES: the exclusive guard of its page, a check that lets it end, and
// nothing written yet (bufmgr.only-commit-after-write).
Result<RowHeader> ended(Transaction& me, RowHeader row, PageId page, Tid tid, RowEnd by, const Holders& holders) {
  const RowPlace at{page, tid.offset};
  const bool made = is_own(me, row);
  const bool far = by.next.valid() && by.next.block != tid.block;
  if (made || far) GCL_TRY(me.commands().note(at, {made ? combo_commands(me, row, at).made : 0, by.command}));
  if (far)
    row.set_far(by.next.block);
  else
    row.set_command(by.command);
  // A holder of FOR UPDATE goes on excluding FOR KEY SHARE.
  if (by.kind == RowTxnKind::kUpdated && holders.word_is_mine && holders.word.strongest() == RowLock::kExclusive)
    by.kind = RowTxnKind::kUpdatedKey;
  row.deleter = RowTxn::of(by.kind, by.id, holders.outer_for(by.id));
  uint8_t flags = uint8_t((row.flags() & ~(kChainUpdated | kHasLockers)) | (by.chained ? kChainUpdated : 0));
  if (holders.recorded() || holders.word_is_others()) flags |= kHasLockers;
  row.set(by.next.offset, row.natts(), flags);
  return row;
}

}  // namespace

// Whether the crosscheck snapshot (of a foreign key's action) sees the row.  Once is enough: unless the version is
// ended, what the snapshot sees of it cannot change; if it is ended, the check changes.
Result<bool> Heap::crosschecked(const RowHeader& row, RowPlace at, const Snapshot** crosscheck) {
  const Snapshot* snapshot = std::exchange(*crosscheck, nullptr);
  return visible(txns_, row, at, *snapshot, nullptr);
}

Result<RowOutcome> Heap::remove(Tid tid, uint32_t command, bool wait, const Snapshot* crosscheck, bool moves) {
  auto id = txns_.id_for_write();
  if (!id) return id.error();
  auto page = page_of(tid.block);
  if (!page) return page.error() == Errc::kNotFound ? Result<RowOutcome>(no_such_row(tid)) : page.error();
  GCL_TRY(hold_to_write(*page, bufmgr::part(tid.offset)));
  Holders holders;
  RowQueuePosition queue(txns_.waiter(), table_, RowLock::kExclusive);
  for (Facts facts;;) {
    UpdateCheck check;
    RowHeader row;
    {
      MiniTransaction change(txns_.pool(), txns_.session());
      GCL_TRY(change.reserve(2 * kLogForHeader + kLogForLock));
      auto guard = txns_.pool().fix_exclusive(txns_.session(), *page, bufmgr::Others::kOfOtherParts);
      if (!guard) return guard.error();
      if (!line_is_row(*guard, tid.offset)) return no_such_row(tid);
      row = HeapPage(guard->bytes()).row_header(tid.offset);
      GCL_TRY(judge_version(row, *page, tid, {command, RowLock::kExclusive}, facts, &holders, &check));
      if (check.kind == UpdateCheck::kConflict || (check.kind == UpdateCheck::kWait && !wait)) return check.outcome;
      if (check.kind == UpdateCheck::kGo && crosscheck == nullptr && holders.word_needs_cell(*id)) {
        GCL_TRY(put_in_cell(tid, row, holders.word, holders, *guard, change, &check));
        if (check.kind == UpdateCheck::kGo) continue;
      } else if (check.kind == UpdateCheck::kGo && crosscheck == nullptr) {
        const RowEnd by{.kind = RowTxnKind::kDeleted, .id = *id, .command = command, .next = moves ? Tid{} : tid};
        auto end = ended(txns_.current(), row, *page, tid, by, holders);
        if (!end) return end.error();
        change.join(*guard);
        put_ending(change, *guard, tid.offset, *end);
        count_superseded(change, *guard);
        change.commit();
        return RowOutcome{.out_of_line = row.out_of_line()};
      }
    }
    if (check.kind == UpdateCheck::kGo) {
      auto seen = crosschecked(row, {*page, tid.offset}, &crosscheck);
      if (!seen) return seen.error();
      if (!*seen) return RowOutcome{.result = RowResult::kUpdated, .conflict = {.next = tid}};
      continue;
    }
    GCL_TRY(resolve_queued(queue, tid, check, holders, facts, WaitFor::kDelete));
  }
}

// The locks of other transactions (FOR KEY SHARE) on a version that is about to be updated, and their bookings, on
// their way to the new one; the old one must keep them, too, in case the update is rolled back.
struct Heap::CarriedLocks {
  std::vector<Locker> locks;
  std::vector<Locker> in_cells;  // of the new version: all but the first lock, which its word says
  std::vector<Locker> kept;      // on the old version, in lock cells already
  CellWriter old_cells, new_cells;
  void write(MiniTransaction& change) {
    if (old_cells.is_open()) old_cells.write(change);
    if (new_cells.is_open()) new_cells.write(change);
  }
  // Changes the image of the new version.
  void put(std::byte* image) const {
    RowHeader row;
    std::memcpy(&row, image, sizeof row);
    if (!locks.empty()) row.deleter = RowTxn::lock(locks[0].mode, locks[0].id, locks[0].outer);
    if (!in_cells.empty()) row.set(row.next_offset(), row.natts(), uint8_t(row.flags() | kHasLockers));
    std::memcpy(image, &row, sizeof row);
  }
};

// kGo: they can be written.  REQUIRES: the guards of both versions' pages; there are such locks.
Result<UpdateCheck> Heap::open_carried(const Holders& holders, Tid from, Tid to, CarriedLocks* carried) {
  if (holders.of_others() > kCarriedMax) {
    TxnId first = holders.word_is_others() ? holders.word.id : holders.others()[0].id;
    return UpdateCheck{.kind = UpdateCheck::kWait,
                       .outcome = {.result = RowResult::kBeingModified, .conflict = {.next = from, .by = first}},
                       .id = first};
  }
  auto add = [](std::vector<Locker>& all, std::span<const Locker> some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  if (holders.word_is_others()) carried->locks.push_back(holders.word);
  add(carried->locks, holders.others());
  const std::span<const Locker> locks = carried->locks;
  if (!locks.empty()) add(carried->in_cells, locks.subspan(1));
  add(carried->in_cells, holders.booked());
  for (auto some : {holders.others(), holders.own(), holders.booked()}) add(carried->kept, some);
  CellPut on_old{from.offset, carried->kept, locks.first(holders.word_is_others() ? 1 : 0)};
  CellPut on_new{to.offset, {}, carried->in_cells};
  auto open = [&](CellWriter& cells, uint32_t block, std::initializer_list<CellPut> puts) -> Result<UpdateCheck> {
    size_t entries = 0;
    for (const CellPut& put : puts) entries += put.add.size();
    if (entries == 0) return UpdateCheck{};
    auto done = cells.open(cells_, block, puts);
    if (!done) return done.error();
    if (*done) return UpdateCheck{};
    return UpdateCheck{.kind = UpdateCheck::kCells, .block = block, .entries = uint32_t(entries)};
  };
  if (from.block == to.block) return open(carried->old_cells, from.block, {on_old, on_new});
  auto check = open(carried->old_cells, from.block, {on_old});
  if (!check || check->kind != UpdateCheck::kGo) return check;
  return open(carried->new_cells, to.block, {on_new});
}

// One attempt of an update under guards.
struct Heap::UpdateStep {
  enum Next : uint8_t { kDone, kJudge, kAgain, kNoRoom, kPrune, kRefresh, kMakeRoom, kTargetFull } next = kJudge;
  UpdateCheck check;
  RowHeader row;
  PageId page;              // the row's
  uint16_t superseded = 0;  // versions on it
  uint32_t target_room = 0;
};

// What the attempts before have found.
struct Heap::UpdateTry {
  bool elsewhere = false;  // the row's page has no room
  bool fresh = false;      // the horizon, lately
  int plans = 0;           // looks for dead versions
  PrunedPage pruned;       // of the row's page
  bool may_plan() const { return plans == 0 || (pruned.version != 0 && plans < kPruneTries); }
};

Result<UpdateOutcome> Heap::update(const UpdateRequest& request) {
  if (kRowHeaderBytes + request.row.body_bytes > kRowBytesMax) return Errc::kTooLarge;
  auto id = txns_.id_for_write();
  if (!id) return id.error();
  const Snapshot* crosscheck = request.crosscheck;
  UpdateTry attempt;
  Holders holders;
  RowQueuePosition queue(txns_.waiter(), table_, request.key_changed ? RowLock::kExclusive : RowLock::kNoKeyExclusive);
  for (Facts facts;;) {
    UpdateOutcome outcome;
    if (attempt.elsewhere) GCL_TRY(ensure_target(kRowHeaderBytes + request.row.body_bytes));
    if (attempt.elsewhere && target_ == request.tid.block) {
      GCL_TRY(give_up_target(0, kRowHeaderBytes + request.row.body_bytes));
      continue;
    }
    auto step = update_once(request, *id, facts, &holders, attempt, crosscheck == nullptr, &outcome);
    if (!step) return step.error();
    switch (step->next) {
      case UpdateStep::kDone:
        stop_at(txns_.session(), StopPoint::kHeapRowUpdated);
        return outcome;
      case UpdateStep::kMakeRoom:
      case UpdateStep::kPrune: {
        uint32_t wanted = step->next == UpdateStep::kMakeRoom ? kRowHeaderBytes + request.row.body_bytes : 0;
        GCL_TRY(plan_room(step->page, wanted, step->superseded, &attempt.pruned));
        ++attempt.plans;
        break;
      }
      case UpdateStep::kRefresh:
        GCL_TRY(txns_.refresh_horizon());
        attempt.fresh = true;
        break;
      case UpdateStep::kAgain:
        break;
      case UpdateStep::kNoRoom:
        attempt.elsewhere = true;
        break;
      case UpdateStep::kTargetFull:
        GCL_TRY(give_up_target(step->target_room, kRowHeaderBytes + request.row.body_bytes));
        break;
      case UpdateStep::kJudge:
      default: {
        const UpdateCheck& check = step->check;
        if (check.kind == UpdateCheck::kConflict || (check.kind == UpdateCheck::kWait && !request.wait))
          return UpdateOutcome{.row = check.outcome};
        if (check.kind != UpdateCheck::kGo) {
          GCL_TRY(resolve_queued(queue, request.tid, check, holders, facts, WaitFor::kUpdate));
          break;
        }
        auto seen = crosschecked(step->row, {step->page, request.tid.offset}, &crosscheck);
        if (!seen) return seen.error();
        if (!*seen) return UpdateOutcome{.row = {.result = RowResult::kUpdated, .conflict = {.next = request.tid}}};
      }
    }
  }
}

Result<Heap::UpdateStep> Heap::update_once(const UpdateRequest& request, TxnId id, const Facts& facts, Holders* holders,
                                           UpdateTry& update, bool may_change, UpdateOutcome* outcome) {
  const bool elsewhere = update.elsewhere;
  auto& pool = txns_.pool();
  auto& session = txns_.session();
  uint32_t bytes = kRowHeaderBytes + request.row.body_bytes;
  UpdateStep step;
  auto page = page_of(request.tid.block);
  if (!page && page.error() == Errc::kNotFound) {
    step.check = {.kind = UpdateCheck::kConflict, .outcome = no_such_row(request.tid)};
    return step;
  }
  if (!page) return page.error();
  step.page = *page;
  PageId other = *page;
  if (elsewhere) {
    auto target = page_of(target_);
    if (!target) return target.error();
    other = *target;
  }
  // The new version needs no part of its own: nothing but the old one and entries, all held, lead to it.
  GCL_TRY(hold_to_write(*page, bufmgr::part(request.tid.offset)));
  if (elsewhere) GCL_TRY(hold_to_insert(other));
  alignas(8) std::byte image[coherence::kPageSize];
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(log_for_row(bytes) + 2 * kLogForHeader + 2 * kLogForLock +
                         (update.pruned.version != 0 ? kLogForPrune : 0)));
  // Two heap pages are latched in the order of their ids.
  auto first = pool.fix_exclusive(session, std::min(*page, other), bufmgr::Others::kOfOtherParts);
  if (!first) return first.error();
  ExclusiveGuard second;
  if (elsewhere) {
    session.next_wait(bufmgr::WaitOrder::kById);
    auto guard = pool.fix_exclusive(session, std::max(*page, other), bufmgr::Others::kOfOtherParts);
    if (!guard) return guard.error();
    second = guard.take();
  }
  bool old_is_first = !elsewhere || *page < other;
  ExclusiveGuard& old_page = old_is_first ? *first : second;
  ExclusiveGuard& new_page = !elsewhere ? *first : old_is_first ? second : *first;

  if (!line_is_row(old_page, request.tid.offset)) {
    step.check = {.kind = UpdateCheck::kConflict, .outcome = no_such_row(request.tid)};
    return step;
  }
  step.row = HeapPage(old_page.bytes()).row_header(request.tid.offset);
  WantedLock wanted{request.command, request.key_changed ? RowLock::kExclusive : RowLock::kNoKeyExclusive};
  GCL_TRY(judge_version(step.row, *page, request.tid, wanted, facts, holders, &step.check));
  if (step.check.kind != UpdateCheck::kGo || !may_change) return step;
  if (holders->word_needs_cell(id)) {
    GCL_TRY(put_in_cell(request.tid, step.row, holders->word, *holders, old_page, change, &step.check));
    if (step.check.kind == UpdateCheck::kGo) step.next = UpdateStep::kAgain;
    return step;
  }

  // What was planned goes into the same record: dead versions are removed, and the new one takes their room.
  bool prunes = update.pruned.is_of(old_page);
  uint16_t line;
  uint32_t place;
  auto find_place = [&] {
    const bool planned = prunes && !elsewhere && update.pruned.place != 0;
    const HeapPage same_page(prunes ? update.pruned.bytes : old_page.bytes());
    line = planned ? update.pruned.line : elsewhere ? line_for(new_page) : same_page.free_line();
    place = planned     ? update.pruned.place
            : elsewhere ? place_for(new_page, line, bytes)
                        : same_page.place_for(line, bytes);
  };
  find_place();
  const uint16_t superseded = step.superseded = old_page.header().reserved;
  if (!elsewhere && !prunes && update.may_plan() && superseded != 0 && (place == 0 || superseded % kPruneEvery == 0)) {
    step.next = place == 0 ? UpdateStep::kMakeRoom : UpdateStep::kPrune;
    if (place != 0 || superseded >= kManySuperseded) return step;
    const RoomHere here = room_here(old_page, bytes, update.fresh, &update.pruned);
    if (here == RoomHere::kUnknown) return step;
    if (here == RoomHere::kStale) {
      step.next = UpdateStep::kRefresh;
      return step;
    }
    ++update.plans;
    if ((prunes = here == RoomHere::kFound)) find_place();
  }
  if (place == 0) {
    step.next = elsewhere ? UpdateStep::kTargetFull : UpdateStep::kNoRoom;
    if (elsewhere) step.target_room = room(new_page);
    return step;
  }
  bool chained = !elsewhere && !request.indexed_changed;
  Tid tid{elsewhere ? target_ : request.tid.block, line};
  compose_row(request.row, id, request.command, tid, chained ? kHeapOnly : 0, image);
  std::optional<CarriedLocks> carried;
  if (holders->of_others() != 0 || !holders->booked().empty()) {
    auto opened = open_carried(*holders, request.tid, tid, &carried.emplace());
    if (!opened) return opened.error();
    step.check = *opened;
    if (opened->kind != UpdateCheck::kGo) return step;
    carried->put(image);
  }
  const RowEnd by{.kind = request.key_changed ? RowTxnKind::kUpdatedKey : RowTxnKind::kUpdated,
                  .id = id,
                  .command = request.command,
                  .next = tid,
                  .chained = chained};
  auto end = ended(txns_.current(), step.row, *page, request.tid, by, *holders);
  if (!end) return end.error();
  change.join(*first);
  if (elsewhere) change.join(second);
  if (prunes) update.pruned.put(change, old_page);
  format_if_unused(change, new_page, uint32_t(relation_.header.number()));
  const Line like = elsewhere ? Line{} : HeapPage(old_page.bytes()).line(request.tid.offset);
  put_row(change, new_page, line, place, image, bytes, like);
  put_ending(change, old_page, request.tid.offset, *end);
  if (carried) carried->write(change);
  count_superseded(change, old_page);
  change.commit();
  outcome->tid = tid;
  outcome->chained = chained;
  step.next = UpdateStep::kDone;
  return step;
}

}  // namespace engine
