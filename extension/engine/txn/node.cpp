// The node's part: joining, the horizon, snapshots.
#include <algorithm>
#include <vector>

#include "extension/engine/txn/transaction.hpp"

namespace engine {

using coherence::Batch;

namespace {

void raise(std::atomic<uint64_t>& word, uint64_t to) noexcept {
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (seen < to && !word.compare_exchange_weak(seen, to, std::memory_order_seq_cst)) {
  }
}

}  // namespace

// The node counts for the horizon (a bound that is not zero) before any of its sessions reads the clock for a snapshot:
// a node that computed a horizon without this one did so from a clock that this node's snapshots have passed.
Status TxnSystem::join() {
  Batch batch(words_.clock().node());
  batch.cas(words_.clock(), 0, kFrozenCts.value);
  int clock = batch.load(words_.clock());
  int reserved = batch.load(words_.reserved(node_));
  int low = batch.load(words_.low_water(node_));
  int root = batch.load(words_.overflow_root(node_));
  int frozen = batch.load(words_.frozen(node_));
  GCL_TRY(run(batch));
  uint64_t bound = batch.op(clock).old;
  Batch publish(words_.clock().node());
  publish.write(words_.bound(node_), &bound, sizeof bound);
  GCL_TRY(run(publish));
  shared_.bound.store(bound, std::memory_order_relaxed);
  shared_.low_water.store(batch.op(low).old, std::memory_order_relaxed);
  shared_.frozen.store(batch.op(root).old == 0 ? batch.op(low).old : batch.op(frozen).old, std::memory_order_relaxed);
  GCL_TRY(finish_leftovers(shared_.frozen.load(std::memory_order_relaxed), batch.op(low).old));
  GCL_TRY(adopt_leftovers(batch.op(low).old, batch.op(reserved).old));
  const std::vector<uint64_t> none(shared_.sessions);
  Batch words(words_.clock().node());
  words.write(words_.session_lock(node_, {0}), none.data(), uint32_t(none.size() * 8));
  words.write(words_.speculation(node_, {0}), none.data(), uint32_t(none.size() * 8));
  GCL_TRY(run(words));
  shared_.join_base = batch.op(reserved).old;
  shared_.reserved.store(batch.op(reserved).old, std::memory_order_release);
  shared_.next.store(batch.op(reserved).old + 1, std::memory_order_release);
  return tick();
}

// Ids of a former incarnation that were not ended never committed: a commit ends with its own word, and an incarnation
// that left one half done was not stopped cleanly (then repair decides, before any node joins).
Status TxnSystem::adopt_leftovers(uint64_t low, uint64_t reserved) {
  StatusWord words[256];
  for (uint64_t at = low + 1; at <= reserved;) {
    uint64_t count = std::min<uint64_t>(reserved - at + 1, std::size(words));
    GCL_TRY(read_log(at, count, words));
    for (uint64_t i = 0; i < count; ++i) {
      if (words[i].state() == TxnState::kPrepared || words[i].state() == TxnState::kCommitting) return Errc::kCorrupt;
      if (words[i].state() != TxnState::kActive) continue;
      Batch batch(words_.clock().node());
      batch.cas(words_.status(TxnId::make(node_, at + i)), words[i].raw, StatusWord::aborted().raw);
      GCL_TRY(run(batch));
    }
    at += count;
  }
  return {};
}

void TxnSystem::leave() noexcept {
  uint64_t none = 0;
  Batch batch(words_.clock().node());
  batch.write(words_.bound(node_), &none, sizeof none);
  if (!run(batch)) return;
  shared_.next.store(0, std::memory_order_relaxed);
}

// The clock is read before the slots are; a session fills its slot before it reads the clock
// (txn.bound-below-snapshots).  So a session whose slot was found empty gets a timestamp that is not below the bound.
Status TxnSystem::publish_bound() {
  Batch read(words_.clock().node());
  int clock = read.load(words_.clock());
  GCL_TRY(run(read));
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the exchange in take_snapshot()
  OldestNeeded oldest(shared_, read.op(clock).old);
  for (uint32_t i = 0; i < shared_.sessions; ++i) oldest.add(i);
  raise(shared_.bound, oldest.bound());
  uint64_t bound = shared_.bound.load(std::memory_order_relaxed);

  uint64_t bounds[coherence::kNodesMax];
  Batch publish(words_.clock().node());
  publish.write(words_.bound(node_), &bound, sizeof bound);
  publish.read(words_.bounds(), bounds, words_.nodes() * 8);
  GCL_TRY(run(publish));
  uint64_t horizon = bound;
  NodeSet present;
  for (uint32_t i = 0; i < words_.nodes(); ++i) {
    if (bounds[i] == 0) continue;
    horizon = std::min(horizon, bounds[i]);
    present.bits |= NodeSet::of({uint8_t(i)}).bits;
  }
  raise(shared_.horizon, horizon);
  shared_.present.store(present.bits, std::memory_order_relaxed);
  return {};
}

bool TxnSystem::away(NodeId node) const noexcept {
  const NodeSet present{shared_.present.load(std::memory_order_relaxed)};
  return present.has(node_) && !present.has(node);
}

Status TxnSystem::tick() {
  GCL_TRY(publish_bound());
  uint64_t low = shared_.low_water.load(std::memory_order_relaxed);
  bool overflowed = shared_.frozen.load(std::memory_order_relaxed) < low;
  uint64_t used = shared_.next.load(std::memory_order_relaxed) - low;
  return overflowed || used > words_.slots() / 8 ? truncate_log() : Status{};
}

Cts TxnSystem::horizon() const noexcept { return {shared_.horizon.load(std::memory_order_acquire)}; }

Result<Cts> TxnSystem::refresh_horizon() {
  GCL_TRY(publish_bound());
  return horizon();
}

Result<Cts> TxnSystem::pass_moment() {
  const auto before = pool_.memory(session_).faa(words_.clock(), 1);
  if (!before) return before.error();
  return Cts{*before};
}

Result<Cts> TxnSystem::take_snapshot() {
  auto& oldest = slot().oldest;
  bool counted = oldest.load(std::memory_order_relaxed) != 0;
  // A full fence between filling the slot and reading the clock; pairs with tick().
  if (!counted) oldest.exchange(shared_.bound.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
  Batch batch(words_.clock().node());
  int clock = batch.load(words_.clock());
  if (auto done = run(batch); !done) {
    if (!counted) oldest.store(0, std::memory_order_release);
    return done.error();
  }
  Cts ts{batch.op(clock).old};
  if (!counted) oldest.store(ts.value, std::memory_order_release);
  return ts;
}

// The order is txn.timestamp-handover-counted's.
void TxnSystem::adopt_snapshot(Cts ts) noexcept {
  auto& oldest = slot().oldest;
  const uint64_t now = oldest.load(std::memory_order_relaxed);
  if (now == 0 || ts.value < now) oldest.store(ts.value, std::memory_order_seq_cst);
  shared_.adopted.fetch_add(1, std::memory_order_seq_cst);  // pairs with OldestNeeded
  std::atomic_thread_fence(std::memory_order_seq_cst);      // before the caller checks the other session
}

void TxnSystem::set_oldest(std::optional<Cts> oldest) noexcept {
  auto& word = slot().oldest;
  if (!oldest) return word.store(0, std::memory_order_release);
  uint64_t now = word.load(std::memory_order_relaxed);
  if (now != 0 && oldest->value > now) word.store(oldest->value, std::memory_order_release);
}

}  // namespace engine
