// The life of a transaction: ids, savepoints, prepare, commit, abort.
#include "extension/engine/txn/transaction.hpp"

#include <algorithm>
#include <utility>

#include "extension/engine/stop/stop_point.hpp"
#include "extension/engine/txn/txn_notes.hpp"

namespace engine {

using coherence::Batch;

const Transaction::Own* Transaction::find(TxnId id) const {
  if (own_.empty() || id < own_.front().id || own_.back().id < id) return nullptr;
  auto at = std::lower_bound(own_.begin(), own_.end(), id, [](const Own& own, TxnId value) { return own.id < value; });
  return at != own_.end() && at->id == id ? &*at : nullptr;
}

bool Transaction::lasts(TxnId id) const { return find(id)->level <= 1; }

TxnSystem::TxnSystem(BufferPool& pool, Session& session, TxnShared& shared, Waiter& waiter, NodeWaker& waker)
    : pool_(pool),
      session_(session),
      shared_(shared),
      waiter_(waiter),
      waker_(waker),
      node_(pool.node()),
      words_(pool.region(bufmgr::Region::kTxnWords), pool.region(bufmgr::Region::kStatusLog), pool.nodes_max(),
             shared.slots_max),
      cache_(kCacheEntries),
      nodes_(pool.nodes_max()) {
  VERIFY(sub_begin(1));
  VERIFY(session.id().value < words_.sessions() && session.id().value < shared.sessions);
  shared_.take(session.id().value);
}

Status TxnSystem::run(Batch& batch) {
  if (pool_.fenced()) return Errc::kFenced;
  return pool_.memory(session_).run(batch);
}

Status TxnSystem::run_unordered(Batch& batch) {
  if (pool_.fenced()) return Errc::kFenced;
  return session_.unordered_memory().run(batch);
}

void TxnSystem::set_host_xid(uint32_t xid, int level) noexcept {
  // Pairs with host_xid_of(): a reader that finds this number finds the former level's id gone.
  if (level == 1)
    slot().host_xid.store(xid, std::memory_order_release);
  else if (const auto at = uint32_t(level - 2); at < TxnSessionSlot::kOpenMax)
    slot().open[at].host_xid.store(xid, std::memory_order_release);
}

Result<TxnId> TxnSystem::id_for_write() {
  auto& levels = txn_.levels_;
  txn_.only_holds_ = false;
  if (levels.back().valid()) return levels.back();
  if (!txn_.own_.make_room(levels.size())) return Errc::kNoMemory;  // before a word says that there is an id
  for (size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].valid()) continue;
    auto id = assign(i == 0 ? TxnId{} : levels[i - 1]);
    if (id) {
      levels[i] = *id;
      txn_.own_.push_back({*id, int(i) + 1});
    }
    // Before any row carries the id; pairs with host_xid_of().
    if (i == 0 && id) slot().top.store(id->raw, std::memory_order_release);
    if (i > 0) list_level(int(i) + 1);
    if (!id) return id.error();
  }
  return levels.back();
}

Result<TxnId> TxnSystem::id_to_hold() {
  if (txn_.wrote()) return txn_.top();
  if (!txn_.own_.make_room(1)) return Errc::kNoMemory;
  auto id = assign({});
  if (!id) return id;
  txn_.levels_[0] = *id;
  txn_.own_.push_back({*id, 1});
  txn_.only_holds_ = true;
  slot().top.store(id->raw, std::memory_order_release);  // as in id_for_write()
  return id;
}

// The slot says of the level what levels_ says of it.
void TxnSystem::list_level(int level) noexcept {
  const auto& levels = txn_.levels_;
  if (const auto at = uint32_t(level - 2); level >= 2 && at < TxnSessionSlot::kOpenMax) {
    const bool open = size_t(level) <= levels.size();
    slot().open[at].id.store(open ? levels[size_t(level) - 1].raw : 0, std::memory_order_release);
    if (!open) slot().open[at].host_xid.store(0, std::memory_order_relaxed);  // the next one may have none
  }
  end_unlisted();
}

void TxnSystem::end_unlisted() noexcept {
  const bool more_than_listed = txn_.levels_.size() > TxnSessionSlot::kOpenMax + 1;
  slot().unlisted.store(more_than_listed, std::memory_order_release);
}

// The word says that a sequence is taken before the id is in any row (txn.sequence-taken-once).  Some are skipped
// (txn.running-id-pinned).
Result<TxnId> TxnSystem::assign(TxnId parent) {
  if (!parent.valid() && id_ahead_.valid()) return std::exchange(id_ahead_, {});
  for (;;) {
    auto id = take_sequence();
    if (!id) return id;
    auto first = parent.valid() ? StatusWord::sub(parent) : StatusWord::active(session_.id(), *id);
    // From before the word is there until the level is listed, `open` is incomplete (txn.running-id-pinned).
    if (parent.valid()) slot().unlisted.store(1, std::memory_order_seq_cst);
    Batch batch(words_.clock().node());
    int cas = batch.cas(words_.status(*id), StatusWord::unused(*id).raw, first.raw);
    GCL_TRY(run_unordered(batch));
    if (batch.cas_succeeded(cas)) return id;
    const auto is_skipped = skipped(*id, StatusWord{batch.op(cas).old});
    if (!is_skipped) return is_skipped.error();
    VERIFY(*is_skipped);
    // No word was written.  With `unlisted` set the session would hold the ring, and now it may wait for the ring
    // itself (txn.running-id-pinned).
    if (parent.valid()) end_unlisted();
  }
}

Result<TxnId> TxnSystem::take_sequence() {
  uint64_t sequence = shared_.next.load(std::memory_order_relaxed);
  VERIFY(sequence != 0);  // joined
  for (;;) {
    if (sequence > shared_.reserved.load(std::memory_order_acquire)) {  // pairs with extend_reserved()
      GCL_TRY(extend_reserved());
      sequence = shared_.next.load(std::memory_order_relaxed);
      continue;
    }
    if (shared_.next.compare_exchange_weak(sequence, sequence + 1, std::memory_order_relaxed)) break;
  }
  return TxnId::make(node_, sequence);
}

// For a snapshot's batch: a sequence whose word that batch is to take; invalid: there is one, or none without ado.
Result<TxnId> TxnSystem::take_sequence_ahead() {
  if (txn_.wrote() || id_ahead_.valid()) return TxnId{};
  if (shared_.next.load(std::memory_order_relaxed) > shared_.reserved.load(std::memory_order_acquire)) return TxnId{};
  return take_sequence();
}

// txn.id-comes-along
void TxnSystem::give_back_id_ahead() noexcept {
  if (!id_ahead_.valid()) return;
  wait_given_back();
  const TxnId id = std::exchange(id_ahead_, {});
  if (pool_.fenced()) return;
  giving_back_.emplace(words_.clock().node());
  giving_back_->cas(words_.status(id), StatusWord::active(session_.id(), id).raw,
                    StatusWord::committed(kFrozenCts).raw);
  session_.unordered_memory().post(*giving_back_);
}

// The batch is in use until it is complete.
void TxnSystem::wait_given_back() noexcept {
  if (!giving_back_) return;
  if (!giving_back_->done()) (void)session_.unordered_memory().wait(*giving_back_);
  giving_back_.reset();
}

Status TxnSystem::sub_begin(int level) {
  auto& levels = txn_.levels_;
  const auto wanted = uint32_t(level);
  if (!levels.make_room(wanted - std::min(levels.size(), wanted))) return Errc::kNoMemory;
  while (levels.size() < wanted) levels.push_back(TxnId{});
  return {};
}

void TxnSystem::sub_commit(int level) noexcept {
  auto& own = txn_.own_;
  for (uint32_t i = own.size(); i > 0 && own[i - 1].level >= level; --i) own[i - 1].level = level - 1;
  close_level(level);
}

// The words of its ids change no more (txn.running-id-pinned).
void TxnSystem::close_level(int level) noexcept {
  const int open = int(txn_.levels_.size());
  txn_.levels_.truncate(uint32_t(std::max(level - 1, 1)));
  for (int closed = std::max(level, 2); closed <= open; ++closed) list_level(closed);
}

void TxnSystem::sub_abort(int level) noexcept {
  auto& own = txn_.own_;
  uint32_t first = own.size();
  while (first > 0 && own[first - 1].level >= level) --first;
  if (first < own.size()) {
    // The first is the level's own id (parents are assigned first); all others descend from it by SUB words, so that
    // one word decides them all.
    TxnId parent = level >= 2 ? txn_.levels_[size_t(level) - 2] : TxnId{};
    finish_aborted(own[first].id, StatusWord::sub(parent), parent);
    own.truncate(first);
  }
  if (speculation_level_ >= level) end_speculation();  // txn.speculation-names-row: behind the status
  close_level(level);
}

// txn.commit-noted-before-host
void TxnSystem::note_commit() {
  const auto& own = txn_.own_;
  uint64_t sequences[TxnNote::kIdsMax];
  for (uint32_t from = 0; from < own.size(); from += TxnNote::kIdsMax) {
    const uint32_t count = std::min(own.size() - from, TxnNote::kIdsMax);
    for (uint32_t i = 0; i < count; ++i) sequences[i] = own[from + i].id.sequence();
    engine::note_commit(pool_.log(), slot().host_xid.load(std::memory_order_relaxed), {sequences, count});
  }
}

Status TxnSystem::prepare(uint64_t host_xid) {
  if (!txn_.wrote() || txn_.only_holds_ || txn_.prepared_) return {};
  if (pool_.fenced()) return Errc::kFenced;
  GCL_TRY(session_.wait_ring_complete());  // log.ring-before-prepared
  note_commit();
  if (host_xid != 0) {
    if (txn_.own_.size() > 1) pool_.log().flush_notes();  // txn.savepoints-durable-first
    GCL_TRY(publish_prepared(host_xid));
  }
  txn_.prepared_ = true;
  return {};
}

// txn.prepared-if-mixed
Status TxnSystem::publish_prepared(uint64_t host_xid) {
  Batch batch(words_.clock().node());
  bufmgr::RedoPush redo = session_.begin_push();
  GCL_TRY(redo.add_to(session_.unordered_memory(), batch));
  batch.write(words_.host_xid(node_, session_.id()), &host_xid, sizeof host_xid);  // txn.kind-before-prepared
  int cas = batch.cas(words_.status(txn_.top()), StatusWord::active(session_.id(), txn_.top()).raw,
                      StatusWord::prepared(session_.id(), txn_.top()).raw);
  GCL_TRY(run_unordered(batch));
  redo.arrived();
  if (!batch.cas_succeeded(cas)) return Errc::kFenced;
  txn_.word_prepared_ = true;
  return {};
}

// COMMITTING is set before the clock moves, both in one batch: a snapshot that reads the clock later finds the
// transaction committing, and finishes it if need be; one that reads it earlier is older than the cts
// (txn.committing-before-clock).
Result<Cts> TxnSystem::commit() {
  if (!txn_.wrote()) {
    end_transaction();
    return Cts{};
  }
  if (txn_.only_holds_) {
    finish_holder();
    end_transaction();
    return Cts{};
  }
  VERIFY(txn_.prepared_);
  auto committing = start_commit();
  if (!committing) return committing.error();
  stop_at(session_, StopPoint::kTxnCommitting);
  return finish_commit(*committing);
}

Result<TxnSystem::Committing> TxnSystem::start_commit() {
  TxnId top = txn_.top();
  GCL_TRY(session_.wait_ring_complete());  // as prepare() has done, but for what was changed since
  Batch batch(words_.clock().node());
  bufmgr::RedoPush redo = session_.begin_push();
  GCL_TRY(redo.add_to(session_.unordered_memory(), batch));
  int cas = batch.cas(words_.status(top), running_word().raw, StatusWord::committing(session_.id(), top).raw);
  int tick = batch.faa(words_.clock(), 1);
  int watch = batch.load(words_.watch(node_, session_.id()));  // txn.watch-then-status: COMMITTING is an end
  GCL_TRY(run_unordered(batch));
  redo.arrived();
  rouse();  // the clock has moved
  if (!batch.cas_succeeded(cas)) return Errc::kFenced;
  return Committing{{batch.op(tick).old + 1}, batch.op(watch).old};
}

Result<Cts> TxnSystem::finish_commit(const Committing& committing) {
  TxnId top = txn_.top();
  Cts cts = committing.cts;
  Batch batch(words_.clock().node());
  int cas =
      batch.cas(words_.status(top), StatusWord::committing(session_.id(), top).raw, StatusWord::committed(cts).raw);
  int low = batch.load(words_.low_water(node_));
  GCL_TRY(run_unordered(batch));
  stop_at(session_, StopPoint::kTxnCommitted);
  wake_watchers(session_.id(), committing.watch);
  Result<StatusWord> word = StatusWord::committed(cts);
  // A reader was faster; and if this session slept for long, the place is another id's by now.
  if (!batch.cas_succeeded(cas))
    word = batch.op(low).old < top.sequence() ? StatusWord{batch.op(cas).old} : read_word(top);
  if (word) {
    VERIFY(word->state() == TxnState::kCommitted);
    remember(top, *word);
    cts = word->cts();
  }
  end_transaction();
  return cts;
}

// No row names the id: it may count as committed for all, as one that was not used (txn.id-comes-along).
void TxnSystem::finish_holder() noexcept {
  const TxnId id = txn_.top();
  Batch batch(words_.clock().node());
  batch.cas(words_.status(id), running_word().raw, StatusWord::committed(kFrozenCts).raw);
  const int watch = batch.load(words_.watch(node_, session_.id()));
  if (!run_unordered(batch)) return;  // as finish_aborted()
  wake_watchers(session_.id(), batch.op(watch).old);
}

void TxnSystem::abort() noexcept {
  if (txn_.only_holds_)
    finish_holder();
  else if (txn_.wrote())
    finish_aborted(txn_.top(), running_word(), {});
  end_transaction();
}

// What the top's word says while nobody has decided it.
StatusWord TxnSystem::running_word() const noexcept {
  return txn_.word_prepared_ ? StatusWord::prepared(session_.id(), txn_.top())
                             : StatusWord::active(session_.id(), txn_.top());
}

void TxnSystem::finish_aborted(TxnId id, StatusWord from, TxnId parent) noexcept {
  Batch batch(words_.clock().node());
  batch.cas(words_.status(id), from.raw, StatusWord::aborted(parent).raw);
  int watch = batch.load(words_.watch(node_, session_.id()));
  if (!run_unordered(batch)) return;  // the pool is gone, and with it all that could see the id
  wake_watchers(session_.id(), batch.op(watch).old);
  remember(id, StatusWord::aborted(parent));
}

void TxnSystem::end_transaction() noexcept {
  give_back_id_ahead();
  end_speculation();  // txn.speculation-names-row: behind the status
  txn_.own_.truncate(0);
  txn_.commands_.forget();
  close_level(2);
  txn_.levels_[0] = TxnId{};
  txn_.prepared_ = false;
  txn_.word_prepared_ = false;
  txn_.only_holds_ = false;
  // After the final status word: a reader that finds the slot empty finds the status final.
  slot().top.store(0, std::memory_order_release);
  slot().host_xid.store(0, std::memory_order_relaxed);
}

}  // namespace engine
