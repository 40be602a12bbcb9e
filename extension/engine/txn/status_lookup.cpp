// What became of an id: the status log, its cache, and waiting for an end.
#include <algorithm>

#include "extension/engine/stop/stop_point.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

using coherence::Batch;

TxnStatus TxnSystem::status_of(StatusWord word) {
  if (word.state() == TxnState::kCommitted) return {.state = TxnState::kCommitted, .cts = word.cts()};
  return {.state = TxnState::kAborted, .parent = word.parent()};
}

void TxnSystem::remember(TxnId id, StatusWord final_word) { cache_[cache_slot(id)] = {id.raw, final_word}; }

std::optional<TxnStatus> TxnSystem::known_status(TxnId id) const {
  if (const auto word = cached_word(id)) return status_of(*word);
  const NodeView& view = nodes_[id.node().value];
  if (id.sequence() > view.frozen) return std::nullopt;
  const auto listed = known_listed(id.node(), id.sequence());
  if (!listed) return std::nullopt;
  return status_of(*listed ? StatusWord::aborted() : StatusWord::committed(kFrozenCts));
}

bool TxnSystem::keep_known(TxnId id) {
  if (cached_word(id)) return true;
  const auto known = known_status(id);
  if (!known) return false;
  remember(id, known->committed() ? StatusWord::committed(known->cts) : StatusWord::aborted(known->parent));
  return true;
}

// The word first, the low-water mark after it: a place that was reused before it was read is below the mark
// (txn.mark-before-clearing).  Then where the words on pages are, and last what is frozen (txn.overflow-is-final).
Result<StatusWord> TxnSystem::read_word(TxnId id) {
  NodeId node = id.node();
  NodeView& view = nodes_[node.value];
  for (bool missed = false;; missed = true) {
    Batch batch(words_.clock().node());
    int word = batch.load(words_.status(id));
    int low = batch.load(words_.low_water(node));
    int root = batch.load(words_.overflow_root(node));
    int frozen = batch.load(words_.frozen(node));
    int count = batch.load(words_.aborted_count(node));
    int swept = batch.load(words_.swept(node));
    GCL_TRY(run_unordered(batch));
    learn_swept(node, batch.op(swept).old);
    uint64_t reached = batch.op(root).old == 0 ? batch.op(low).old : batch.op(frozen).old;
    if (reached > view.frozen) {
      GCL_TRY(load_aborted(node, batch.op(count).old));
      view.frozen = reached;
    }
    if (id.sequence() <= view.frozen) {
      auto bad = listed(node, id.sequence());
      if (!bad) return bad.error();
      return *bad ? StatusWord::aborted() : StatusWord::committed(kFrozenCts);
    }
    if (id.sequence() > batch.op(low).old) return StatusWord{batch.op(word).old};
    auto found = overflow_word(id, PageId{batch.op(root).old - 1});
    if (!found) return found.error();
    // The page was read after the word, so the place was the id's when the word was read (txn.running-id-pinned).
    if (*found) return (*found)->state() == TxnState::kPinned ? StatusWord{batch.op(word).old} : **found;
    if (missed) return Errc::kCorrupt;  // a page goes after its ids are frozen: the second round sees that
  }
}

// Only the winner of the CAS decides the cts; ours is later than any snapshot that asks (txn.reader-finishes-commit).
Result<StatusWord> TxnSystem::help_commit(TxnId id, StatusWord seen) {
  Batch tick(words_.clock().node());
  int faa = tick.faa(words_.clock(), 1);
  GCL_TRY(run_unordered(tick));
  auto committed = StatusWord::committed({tick.op(faa).old + 1});
  Batch batch(words_.clock().node());
  int cas = batch.cas(words_.status(id), seen.raw, committed.raw);
  int low = batch.load(words_.low_water(id.node()));
  GCL_TRY(run_unordered(batch));
  if (batch.cas_succeeded(cas)) return committed;
  // Another session has finished it; or the place is another id's by now.
  return batch.op(low).old < id.sequence() ? Result<StatusWord>(StatusWord{batch.op(cas).old}) : read_word(id);
}

// Levels between `id` and `at` may have been rolled back after their words were read and before `at` committed
// (txn.sub-words-still-stand).  All such words precede the commit, so that now they are there to be seen.
Result<TxnStatus> TxnSystem::inherit(TxnId id, TxnId at, StatusWord final_word) {
  for (TxnId down = id; final_word.state() == TxnState::kCommitted && down != at;) {
    auto word = read_word(down);
    if (!word) return word.error();
    if (word->state() == TxnState::kCommitted) break;  // frozen, and not in the aborted list
    if (word->state() == TxnState::kAborted)
      final_word = *word;
    else if (word->state() == TxnState::kSub)
      down = word->parent();
    else
      return Errc::kCorrupt;
  }
  remember(id, final_word);
  return status_of(final_word);
}

bool TxnSystem::found_running(TxnId id) const noexcept {
  return found_running_ != nullptr &&
         std::find(found_running_->begin(), found_running_->end(), id) != found_running_->end();
}

Result<TxnStatus> TxnSystem::status(TxnId id) {
  if (found_running(id)) return TxnStatus{.state = TxnState::kActive, .top = id};
  for (TxnId at = id;;) {
    if (auto known = known_status(at)) {
      if (at == id) return *known;
      return inherit(id, at,
                     known->committed() ? StatusWord::committed(known->cts) : StatusWord::aborted(known->parent));
    }
    stop_at(session_, StopPoint::kTxnStatusWanted);
    auto word = read_word(at);
    if (!word) return word.error();
    if (word->state() == TxnState::kCommitting) word = help_commit(at, *word);
    if (!word) return word.error();
    switch (word->state()) {
      case TxnState::kActive:
      case TxnState::kPrepared:
      case TxnState::kCommitting:
        return TxnStatus{.state = word->state() == TxnState::kActive ? TxnState::kActive : TxnState::kPrepared,
                         .top = at};
      case TxnState::kSub:
        at = word->parent();
        break;
      case TxnState::kCommitted:
      case TxnState::kAborted:
        remember(at, *word);
        return inherit(id, at, *word);
      case TxnState::kUnused:
      default:
        return Errc::kCorrupt;
    }
  }
}

Result<std::optional<TxnStatus>> TxnSystem::status_if_used(TxnId id) {
  const auto word = read_word(id);
  if (!word) return word.error();
  if (word->state() == TxnState::kUnused || word->state() == TxnState::kSkipped) return std::optional<TxnStatus>{};
  const auto known = status(id);
  if (!known) return known.error();
  return std::optional(*known);
}

Result<Owner> TxnSystem::owner(TxnId id) {
  for (TxnId at = id;;) {
    auto word = read_word(at);
    if (!word) return word.error();
    if (word->state() == TxnState::kUnused) return Errc::kCorrupt;
    if (word->state() == TxnState::kSub) {
      at = word->parent();
      continue;
    }
    return Owner{.top = at, .state = word->state(), .session = word->final() ? SessionId{} : word->session()};
  }
}

// The node's bit is in the watch word before the status is read again (txn.watch-then-status).
Result<bool> TxnSystem::watch(TxnId id) {
  auto who = owner(id);
  if (!who) return who.error();
  if (who->state == TxnState::kCommitted || who->state == TxnState::kAborted) return false;
  GCL_TRY(be_woken_by(who->top.node(), who->session));
  auto again = status(id);
  if (!again) return again.error();
  return again->running();
}

Status TxnSystem::be_woken_by(NodeId node, SessionId session) {
  auto word = words_.watch(node, session);
  uint64_t bit = NodeSet::of(node_).bits;
  uint64_t seen = 0;
  for (;;) {
    if (seen & bit) break;
    Batch batch(words_.clock().node());
    int cas = batch.cas(word, seen, seen | bit);
    GCL_TRY(run_unordered(batch));
    if (batch.cas_succeeded(cas)) break;
    seen = batch.op(cas).old;
  }
  return {};
}

Result<bool> TxnSystem::watched(SessionId session) {
  Batch batch(words_.clock().node());
  int load = batch.load(words_.watch(node_, session));
  GCL_TRY(run_unordered(batch));
  return batch.op(load).old != 0;
}

void TxnSystem::wake_watchers(SessionId session, uint64_t seen) noexcept {
  NodeSet nodes;
  while (seen != 0) {
    nodes.bits |= seen;
    Batch batch(words_.clock().node());
    int cas = batch.cas(words_.watch(node_, session), seen, 0);
    if (!run_unordered(batch)) return;
    seen = batch.cas_succeeded(cas) ? 0 : batch.op(cas).old;
  }
  if (!nodes.empty()) waker_.wake(nodes);
}

// As watch(); the word of the holds is behind the watch word, too (serializable.want-then-look).
Result<bool> TxnSystem::want_holds(TxnId id) {
  auto who = owner(id);
  if (!who) return who.error();
  if (who->state == TxnState::kCommitted || who->state == TxnState::kAborted) return false;
  GCL_TRY(be_woken_by(id.node(), who->session));
  HoldWord seen;
  while (seen.sequence() < id.sequence()) {
    Batch batch(words_.clock().node());
    const int cas = batch.cas(words_.hold(id.node(), who->session), seen.raw, HoldWord::wanted(id).raw);
    GCL_TRY(run_unordered(batch));
    seen = HoldWord{batch.op(cas).old};
    if (!batch.cas_succeeded(cas)) continue;
    waker_.wake(NodeSet::of(id.node()));
    break;
  }
  if (seen == HoldWord::given(id)) return false;
  auto again = status(id);
  if (!again) return again.error();
  return again->running();
}

Status TxnSystem::wanted_holds(NodeId of, uint32_t count, HoldWord* to) {
  static_assert(sizeof(HoldWord) == 8);
  Batch batch(words_.clock().node());
  batch.read(words_.hold(of, {0}), to, count * uint32_t(sizeof(HoldWord)));
  return run_unordered(batch);
}

// A word stays when its transaction has ended.
Result<bool> TxnSystem::holds_are_wanted(NodeSet on) {
  HoldWord word[coherence::kSessionsMax];
  for (; !on.empty(); on = on.without(on.first())) {
    GCL_TRY(wanted_holds(on.first(), coherence::kSessionsMax, word));
    for (const HoldWord& at : word) {
      const TxnId id = TxnId::make(on.first(), at.sequence());
      if (at == HoldWord{} || at == HoldWord::given(id)) continue;
      const auto found = status(id);
      if (!found) return found.error();
      if (found->running()) return true;
    }
  }
  return false;
}

Status TxnSystem::tell_given_up(SessionId session, TxnId id) {
  Batch batch(words_.clock().node());
  batch.cas(words_.hold(node_, session), HoldWord::wanted(id).raw, HoldWord::given(id).raw);
  const int watch = batch.load(words_.watch(node_, session));
  GCL_TRY(run_unordered(batch));
  wake_watchers(session, batch.op(watch).old);
  return {};
}

uint32_t TxnSystem::host_xid_of(TxnId id, TxnId top) const noexcept {
  for (uint32_t i = 0; i < shared_.sessions; ++i) {
    TxnSessionSlot& other = shared_.slot(i);
    if (other.top.load(std::memory_order_acquire) != top.raw) continue;  // pairs with id_for_write()
    if (id != top) {
      for (OpenLevel& level : other.open) {
        if (level.id.load(std::memory_order_acquire) != id.raw) continue;  // pairs with list_level()
        const uint32_t xid = level.host_xid.load(std::memory_order_acquire);
        if (xid != 0 && level.id.load(std::memory_order_relaxed) == id.raw) return xid;
      }
    }
    uint32_t xid = other.host_xid.load(std::memory_order_acquire);
    return other.top.load(std::memory_order_relaxed) == top.raw ? xid : 0;
  }
  return 0;
}

}  // namespace engine
