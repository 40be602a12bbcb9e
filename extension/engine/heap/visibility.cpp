#include "extension/engine/heap/visibility.hpp"

#include <algorithm>

namespace engine {

namespace {

enum class Made : uint8_t { kNever, kMine, kRunning, kCommitted };

struct Creation {
  Made made;
  Cts cts;
};

inline Result<Creation> creation(TxnSystem& txns, const RowHeader& row) {
  switch (row.creator.kind()) {
    case RowTxnKind::kFrozen:
      return Creation{Made::kCommitted, kFrozenCts};
    case RowTxnKind::kCommitted:
      return Creation{Made::kCommitted, row.creator.cts()};
    case RowTxnKind::kAborted:
      return Creation{Made::kNever, {}};
    case RowTxnKind::kInserted: {
      if (txns.current().is_mine(row.creator.id())) return Creation{Made::kMine, {}};
      if (const auto word = txns.cached_word(row.creator.id()))
        return Creation{word->state() == TxnState::kCommitted ? Made::kCommitted : Made::kNever, word->cts()};
      auto status = txns.status(row.creator.id());
      if (!status) return status.error();
      if (status->running()) return Creation{Made::kRunning, {}};
      return Creation{status->committed() ? Made::kCommitted : Made::kNever, status->cts};
    }
    default:
      return Errc::kCorrupt;
  }
}

// What became of the version's deleter, if it has one that ends it (locks do not).
enum class Ending : uint8_t { kNone, kMine, kRunning, kCommitted };

struct End {
  Ending ending;
  Cts cts;
};

inline Result<End> ending(TxnSystem& txns, const RowHeader& row) {
  if (!row.ended()) return End{Ending::kNone, {}};
  if (txns.current().is_mine(row.deleter.id())) return End{Ending::kMine, {}};
  if (const auto word = txns.cached_word(row.deleter.id()))
    return End{word->state() == TxnState::kCommitted ? Ending::kCommitted : Ending::kNone, word->cts()};
  auto status = txns.status(row.deleter.id());
  if (!status) return status.error();
  if (status->aborted()) return End{Ending::kNone, {}};
  if (status->running()) return End{Ending::kRunning, {}};
  return End{Ending::kCommitted, status->cts};
}

Result<bool> visible_mvcc(TxnSystem& txns, const RowHeader& row, RowPlace at, const Snapshot& snapshot) {
  auto made = creation(txns, row);
  if (!made) return made.error();
  if (made->made == Made::kNever || made->made == Made::kRunning) return false;
  if (made->made == Made::kMine && combo_commands(txns.current(), row, at).made >= snapshot.command) return false;
  if (made->made == Made::kCommitted && made->cts > snapshot.ts) return false;
  auto end = ending(txns, row);
  if (!end) return end.error();
  if (end->ending == Ending::kMine) return combo_commands(txns.current(), row, at).ended >= snapshot.command;
  return end->ending != Ending::kCommitted || end->cts > snapshot.ts;
}

// A transaction that is prepared may be one that held this page, and whose node died: what it is to be is decided later
// (serializable.doubt-is-waited-for).  What the reader has learned of the page's ids is older than the end of that
// wait.
Status wait_for_doubt(TxnSystem& txns, TxnId id) {
  for (;;) {
    auto owner = txns.owner(id);
    if (!owner) return owner.error();
    const bool committed = owner->state == TxnState::kCommitted || owner->state == TxnState::kCommitting;
    if (owner->state != TxnState::kPrepared) return committed ? Status(Errc::kConflict) : Status();
    GCL_TRY(txns.waiter().wait_for(id, WaitFor::kPage));
  }
}

// The page is held (Snapshot::strict): what is committed now stays as it is, and must be what the snapshot sees.
Result<bool> visible_strictly(TxnSystem& txns, const RowHeader& row, RowPlace at, const Snapshot& snapshot) {
  auto made = creation(txns, row);
  if (!made) return made.error();
  if (made->made == Made::kCommitted && made->cts > snapshot.ts) return Errc::kConflict;
  if (made->made == Made::kRunning) GCL_TRY(wait_for_doubt(txns, row.creator.id()));
  auto end = ending(txns, row);
  if (!end) return end.error();
  if (made->made != Made::kNever && end->ending == Ending::kCommitted && end->cts > snapshot.ts) return Errc::kConflict;
  if (end->ending == Ending::kRunning) GCL_TRY(wait_for_doubt(txns, row.deleter.id()));
  return visible_mvcc(txns, row, at, snapshot);
}

Result<bool> visible_now(TxnSystem& txns, const RowHeader& row, bool dirty, TxnId* running) {
  auto made = creation(txns, row);
  if (!made) return made.error();
  if (made->made == Made::kNever) return false;
  if (made->made == Made::kRunning) {
    if (dirty && running) *running = row.creator.id();
    return dirty;
  }
  auto end = ending(txns, row);
  if (!end) return end.error();
  if (end->ending == Ending::kRunning && dirty && running) *running = row.deleter.id();
  return end->ending == Ending::kNone || end->ending == Ending::kRunning;
}

Result<bool> visible_part(TxnSystem& txns, const RowHeader& row) {
  auto made = creation(txns, row);
  if (!made) return made.error();
  return made->made != Made::kNever;
}

}  // namespace

// heap.note-of-this-version.
Commands combo_commands(const Transaction& me, const RowHeader& row, RowPlace at) {
  if (!row.ended()) return {.made = row.command()};
  if (is_own(me, row) || (row.far() && me.is_mine(row.deleter.id()))) return me.commands().at(at);
  return row.far() ? Commands{} : Commands{.ended = row.command()};
}

Result<bool> visible(TxnSystem& txns, const RowHeader& row, RowPlace at, const Snapshot& snapshot, TxnId* running) {
  switch (snapshot.kind) {
    case SnapshotKind::kMvcc:
      return snapshot.strict && txns.session().holding() ? visible_strictly(txns, row, at, snapshot)
                                                         : visible_mvcc(txns, row, at, snapshot);
    case SnapshotKind::kSelf:
      return visible_now(txns, row, false, nullptr);
    case SnapshotKind::kDirty:
      return visible_now(txns, row, true, running);
    case SnapshotKind::kAny:
      return true;
    case SnapshotKind::kPart:
      return visible_part(txns, row);
    case SnapshotKind::kNonVacuumable:
    default: {
      bool mine;
      auto life = liveness(txns, row, &mine);
      if (!life) return life.error();
      return *life != Liveness::kDead;
    }
  }
}

Result<Liveness> liveness(TxnSystem& txns, const RowHeader& row, bool* mine, bool* never_made) {
  *mine = false;
  auto made = creation(txns, row);
  if (!made) return made.error();
  if (never_made != nullptr) *never_made = made->made == Made::kNever;
  if (made->made == Made::kNever) return Liveness::kDead;
  if (made->made == Made::kRunning) return Liveness::kInsertRunning;
  auto end = ending(txns, row);
  if (!end) return end.error();
  *mine = made->made == Made::kMine || end->ending == Ending::kMine;
  switch (end->ending) {
    case Ending::kNone:
      return made->made == Made::kMine ? Liveness::kInsertRunning : Liveness::kLive;
    case Ending::kMine:
    case Ending::kRunning:
      return Liveness::kDeleteRunning;
    case Ending::kCommitted:
    default:
      return end->cts <= txns.horizon() ? Liveness::kDead : Liveness::kRecentlyDead;
  }
}

Result<AsOf> as_of(TxnSystem& txns, const RowHeader& row, RowPlace at, const Snapshot& snapshot) {
  auto there = visible_mvcc(txns, row, at, snapshot);
  if (!there) return there.error();
  if (*there) return AsOf::kThere;
  auto made = creation(txns, row);
  if (!made) return made.error();
  const bool later = made->made == Made::kRunning || (made->made == Made::kCommitted && made->cts > snapshot.ts) ||
                     (made->made == Made::kMine && combo_commands(txns.current(), row, at).made >= snapshot.command);
  return later ? AsOf::kToCome : AsOf::kGone;
}

Result<bool> is_successor(TxnSystem& txns, const RowHeader& row, const RowHeader& next) {
  if (next.creator.kind() == RowTxnKind::kInserted) return next.creator.id() == row.deleter.id();
  if (next.creator.kind() == RowTxnKind::kAborted) return false;
  if (txns.current().is_mine(row.deleter.id())) return false;  // what still runs gets no hint
  auto status = txns.status(row.deleter.id());
  if (!status) return status.error();
  if (!status->committed()) return false;
  // A frozen successor: no version of a committed chain is removed before the ones that lead to it
  // (heap.prune-whole-prefix), so a stranger cannot be there.
  return next.creator.kind() == RowTxnKind::kFrozen || status->cts == kFrozenCts || next.creator.cts() == status->cts;
}

std::optional<TxnStatus> Facts::get(const TxnSystem& txns, TxnId id) const {
  for (auto fact = more_.rbegin(); fact != more_.rend(); ++fact)
    if (fact->id == id) return fact->status;
  for (int i = count_; i-- > 0;)
    if (few_[i].id == id) return few_[i].status;
  return txns.known_status(id);
}

Status Facts::learn(TxnSystem& txns, TxnId id) {
  auto status = txns.status(id);
  if (!status) return status.error();
  if (count_ < kFew)
    few_[count_++] = {id, *status};
  else
    more_.push_back({id, *status});
  return {};
}

namespace {

UpdateCheck conflict(RowResult result, const RowHeader& row, Tid tid) {
  UpdateCheck check{.kind = UpdateCheck::kConflict};
  check.outcome.result = result;
  check.outcome.conflict = {.next = result == RowResult::kUpdated ? row.next(tid.block) : tid,
                            .by = row.ended() ? row.deleter.id() : TxnId{},
                            .key_changed = row.deleter.kind() == RowTxnKind::kUpdatedKey,
                            .moved = result == RowResult::kUpdated && row.moved()};
  return check;
}

UpdateCheck wait_for(TxnId id, const RowHeader& row, Tid tid) {
  UpdateCheck check = conflict(RowResult::kBeingModified, row, tid);
  check.kind = UpdateCheck::kWait;
  check.id = id;
  check.outcome.conflict.by = id;
  return check;
}

UpdateCheck ask(TxnId id) { return {.kind = UpdateCheck::kAsk, .id = id}; }

// What a recorded lock amounts to, by what is known.
struct Hold {
  enum Kind : uint8_t { kOver, kMine, kRunning, kUnknown } kind;
  TxnId id;  // kRunning: it must end; kUnknown: its status is wanted
  RowLock mode = RowLock::kKeyShare;
  bool committed = false;  // kOver
};

Hold hold_of(const TxnSystem& txns, const Facts& facts, const Locker& locker) {
  if (txns.current().is_mine(locker.id)) return {Hold::kMine, locker.id, locker.strongest()};
  auto status = facts.get(txns, locker.id);
  if (!status) return {Hold::kUnknown, locker.id};
  if (status->running()) return {Hold::kRunning, locker.id, locker.strongest()};
  const bool committed = status->committed();
  // From a rolled back savepoint to the level that is left with the outer lock (heap.lock-falls-to-parent).
  while (status->aborted() && locker.outer.held() && status->parent.valid()) {
    TxnId holder = status->parent;
    if (txns.current().is_mine(holder)) return {Hold::kMine, txns.current().top(), locker.outer.mode()};
    status = facts.get(txns, holder);
    if (!status) return {Hold::kUnknown, holder};
    if (status->running()) return {Hold::kRunning, holder, locker.outer.mode()};
  }
  return {.kind = Hold::kOver, .id = {}, .committed = committed};
}

}  // namespace

UpdateCheck judge(const TxnSystem& txns, const Facts& facts, const RowHeader& row, PageId page, Tid tid,
                  const WantedLock& wanted, Holders* holders) {
  const RowPlace at{page, tid.offset};
  const Transaction& me = txns.current();
  holders->clear();
  if (row.creator.kind() == RowTxnKind::kAborted) return conflict(RowResult::kInvisible, row, tid);
  if (row.creator.kind() == RowTxnKind::kInserted && !wanted.newer) {
    TxnId creator = row.creator.id();
    if (me.is_mine(creator)) {
      if (combo_commands(me, row, at).made >= wanted.command) return conflict(RowResult::kInvisible, row, tid);
    } else {
      auto status = facts.get(txns, creator);
      if (!status) return ask(creator);
      if (!status->committed()) return conflict(RowResult::kInvisible, row, tid);
    }
  }
  if (row.deleter.kind() == RowTxnKind::kNone) return {.kind = UpdateCheck::kGo};
  Locker locker = locker_of(row);
  Hold hold = hold_of(txns, facts, locker);
  bool itself = hold.id == locker.id;
  switch (hold.kind) {
    case Hold::kUnknown:
      return ask(hold.id);
    case Hold::kMine:
      if (itself && row.ended()) {
        const uint32_t command = combo_commands(me, row, at).ended;
        UpdateCheck own =
            conflict(command >= wanted.command ? RowResult::kSelfModified : RowResult::kInvisible, row, tid);
        own.outcome.conflict.cmax = command;
        return own;
      }
      holders->word_is_mine = true;
      holders->word_lasts = me.lasts(hold.id);
      holders->mine_too(hold.mode);
      break;
    case Hold::kRunning:
      if (excludes(hold.mode, wanted.mode)) return wait_for(hold.id, row, tid);
      holders->updating = itself && row.ended();
      break;
    case Hold::kOver:
      if (!row.ended() || !hold.committed) return {.kind = UpdateCheck::kGo};
      return conflict(
          row.moved() || (row.updated() && row.next(tid.block) != tid) ? RowResult::kUpdated : RowResult::kDeleted, row,
          tid);
  }
  holders->word = itself ? locker : Locker{hold.id, hold.mode, {}};
  return {.kind = UpdateCheck::kGo};
}

namespace {

// An earlier booking of the row whose owner could have it now (heap.bookings-in-order); null: none.  REQUIRES: all live
// locks are in *holders.
const Locker* earlier_booking(const Transaction& me, const RowHeader& row, const WantedLock& wanted,
                              const Holders& holders) {
  if (wanted.newer || holders.mine >= 0 || is_own(me, row)) return nullptr;
  auto kept_out = [&](RowLock mode) {
    return (holders.word_is_others() && excludes(holders.word.strongest(), mode)) ||
           std::ranges::any_of(holders.others(), [&](const Locker& o) { return excludes(o.strongest(), mode); });
  };
  for (const Locker& booking : holders.booked()) {
    const bool before = holders.place == 0 || comes_before(booking.place, holders.place);
    if (before && excludes(booking.mode, wanted.mode) && !kept_out(booking.mode)) return &booking;
  }
  return nullptr;
}

}  // namespace

UpdateCheck judge_recorded(const TxnSystem& txns, const Facts& facts, const RowHeader& row, Tid tid,
                           const WantedLock& wanted, std::span<const Locker> recorded, Holders* holders) {
  holders->cells = std::make_unique<RecordedLocks>();
  RecordedLocks& found = *holders->cells;
  for (const Locker& locker : recorded) {
    Hold hold = hold_of(txns, facts, locker);
    switch (hold.kind) {
      case Hold::kUnknown:
        found.unknown.push_back(hold.id);
        break;
      case Hold::kMine:
        if (locker.booked()) {
          holders->place = locker.place;
          break;
        }
        holders->mine_too(hold.mode);
        found.own.push_back(locker);
        break;
      case Hold::kRunning:
        if (locker.booked()) {
          found.booked.push_back(locker);
          break;
        }
        if (excludes(hold.mode, wanted.mode)) return wait_for(hold.id, row, tid);
        found.others.push_back(locker);
        break;
      case Hold::kOver:
        break;
    }
  }
  if (!found.unknown.empty()) return ask(found.unknown.back());
  const Locker* first = earlier_booking(txns.current(), row, wanted, *holders);
  return first == nullptr ? UpdateCheck{.kind = UpdateCheck::kGo} : wait_for(first->id, row, tid);
}

}  // namespace engine
