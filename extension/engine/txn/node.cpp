// The node's part: joining, the horizon, snapshots.
#include <algorithm>
#include <utility>
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
Status TxnSystem::join(HostCommits* host) {
  GCL_TRY(resolve_former_incarnation(host));
  Batch batch(words_.clock().node());
  batch.cas(words_.clock(), 0, kFrozenCts.value);
  int clock = batch.faa(words_.clock(), 1);  // above every bound of a former incarnation (txn.dead-by-exact-value)
  int reserved = batch.load(words_.reserved(node_));
  int low = batch.load(words_.low_water(node_));
  int root = batch.load(words_.overflow_root(node_));
  int frozen = batch.load(words_.frozen(node_));
  GCL_TRY(run(batch));
  uint64_t bound = batch.op(clock).old + 1;
  Batch publish(words_.clock().node());
  publish.write(words_.bound(node_), &bound, sizeof bound);
  GCL_TRY(run(publish));
  shared_.bound.store(bound, std::memory_order_relaxed);
  shared_.low_water.store(batch.op(low).old, std::memory_order_relaxed);
  shared_.frozen.store(batch.op(root).old == 0 ? batch.op(low).old : batch.op(frozen).old, std::memory_order_relaxed);
  GCL_TRY(unpin_leftovers(shared_.frozen.load(std::memory_order_relaxed), batch.op(low).old));
  shared_.join_base = batch.op(reserved).old;
  shared_.reserved.store(batch.op(reserved).old, std::memory_order_release);
  shared_.next.store(batch.op(reserved).old + 1, std::memory_order_release);
  GCL_TRY(stay_awake());
  GCL_TRY(tick());
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
Result<TxnSystem::Bounds> TxnSystem::publish_bound(uint64_t clock_before) {
  Bounds found{.clock = clock_before};
  if (clock_before == 0) {
    Batch read(words_.clock().node());
    int clock = read.load(words_.clock());
    GCL_TRY(run_unordered(read));
    found.clock = read.op(clock).old;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the exchange in take_snapshot()
  OldestNeeded oldest(shared_, found.clock);
  shared_.for_each_taken([&](uint32_t i) { oldest.add(i); });
  raise(shared_.bound, oldest.bound());
  found.own = shared_.bound.load(std::memory_order_relaxed);

  Batch publish(words_.clock().node());
  publish.write(words_.bound(node_), &found.own, sizeof found.own);
  publish.read(words_.bounds(), found.of, words_.nodes() * 8);
  int sleepers = publish.load(words_.sleepers());
  GCL_TRY(run_unordered(publish));
  found.sleepers.bits = publish.op(sleepers).old;
  uint64_t horizon = found.own;
  NodeSet present;
  for (uint32_t i = 0; i < words_.nodes(); ++i) {
    if (found.of[i] == 0) continue;
    horizon = std::min(horizon, found.of[i]);
    present.bits |= NodeSet::of({uint8_t(i)}).bits;
  }
  raise(shared_.horizon, horizon);
  shared_.present.store(present.bits, std::memory_order_relaxed);
  return found;
}

NodeSet TxnSystem::Bounds::below(uint64_t least) const noexcept {
  NodeSet behind;
  for (uint32_t i = 0; i < coherence::kNodesMax; ++i)
    if (of[i] != 0 && of[i] < least) behind.bits |= NodeSet::of({uint8_t(i)}).bits;
  return behind;
}

bool TxnSystem::away(NodeId node) const noexcept {
  const NodeSet present{shared_.present.load(std::memory_order_relaxed)};
  return present.has(node_) && !present.has(node);
}

Result<bool> TxnSystem::tick() {
  const auto bounds = publish_bound();
  if (!bounds) return bounds.error();
  const NodeSet behind = bounds->below(bounds->own).without(node_);
  if (const NodeSet asleep{behind.bits & bounds->sleepers.bits}; !asleep.empty()) waker_.wake(asleep);
  const bool moved = std::exchange(clock_at_tick_, bounds->clock) != bounds->clock;
  const uint64_t low = shared_.low_water.load(std::memory_order_relaxed);
  const uint64_t frozen = shared_.frozen.load(std::memory_order_relaxed);
  const uint64_t used = shared_.next.load(std::memory_order_relaxed) - low;
  if (frozen >= low && used <= words_.slots() / 8) return moved;
  GCL_TRY(truncate_log());
  return moved || low != shared_.low_water.load(std::memory_order_relaxed) ||
         frozen != shared_.frozen.load(std::memory_order_relaxed);
}

Result<bool> TxnSystem::fall_asleep() {
  if (asleep_.value_or(false)) return true;
  shared_.clock_at_sleep.store(clock_at_tick_, std::memory_order_relaxed);
  shared_.member_sleeps.store(1, std::memory_order_seq_cst);  // pairs with rouse()
  Batch batch(words_.clock().node());
  batch.faa(words_.sleepers(), NodeSet::of(node_).bits);
  GCL_TRY(run_unordered(batch));
  asleep_ = true;
  return false;
}

void TxnSystem::rouse() noexcept {
  if (shared_.member_sleeps.load(std::memory_order_seq_cst) != 0 && shared_.member_sleeps.exchange(0) != 0)
    waker_.wake(NodeSet::of(node_));
}

bool TxnSystem::roused() const noexcept {
  return asleep_.value_or(false) && shared_.member_sleeps.load(std::memory_order_seq_cst) == 0;
}

Status TxnSystem::stay_awake() {
  shared_.member_sleeps.store(0, std::memory_order_seq_cst);
  const uint64_t bit = NodeSet::of(node_).bits;
  if (!asleep_) {
    const auto sleepers = load(words_.sleepers());
    if (!sleepers) return sleepers.error();
    asleep_ = (*sleepers & bit) != 0;
  }
  if (!*asleep_) return {};
  Batch batch(words_.clock().node());
  batch.faa(words_.sleepers(), 0 - bit);
  GCL_TRY(run_unordered(batch));
  asleep_ = false;
  return {};
}

Cts TxnSystem::horizon() const noexcept { return {shared_.horizon.load(std::memory_order_acquire)}; }

// The bound is not above the session's own timestamp: to know the clock of then is enough.
Result<Cts> TxnSystem::refresh_horizon(Cts wanted) {
  const uint64_t oldest = slot().oldest.load(std::memory_order_relaxed);
  const auto bounds = publish_bound(oldest != 0 && oldest <= snapshot_taken_ ? snapshot_taken_ : 0);
  if (!bounds) return bounds.error();
  const NodeSet behind = bounds->below(wanted.value + 1).without(node_);
  if (wanted != Cts{} && !behind.empty()) waker_.wake(behind);
  return horizon();
}

Result<Cts> TxnSystem::pass_moment() {
  const auto before = pool_.memory(session_).faa(words_.clock(), 1);
  if (!before) return before.error();
  rouse();
  return Cts{*before};
}

Result<Cts> TxnSystem::take_snapshot(Intent intent) {
  TxnId ahead{};
  if (intent == Intent::kWrite)
    if (auto id = take_sequence_ahead(); id) ahead = *id;  // why there is none is id_for_write()'s to say
  auto& oldest = slot().oldest;
  bool counted = oldest.load(std::memory_order_relaxed) != 0;
  // A full fence between filling the slot and reading the clock; pairs with tick().
  if (!counted) oldest.exchange(shared_.bound.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
  Batch batch(words_.clock().node());
  const StatusWord active = StatusWord::active(session_.id(), ahead);
  if (ahead.valid()) batch.cas(words_.status(ahead), StatusWord::unused(ahead).raw, active.raw);
  int clock = batch.load(words_.clock());
  if (auto done = run_unordered(batch); !done) {
    if (!counted) oldest.store(0, std::memory_order_release);
    return done.error();
  }
  if (ahead.valid() && batch.cas_succeeded(0)) id_ahead_ = ahead;  // else it is skipped (txn.running-id-pinned)
  Cts ts{batch.op(clock).old};
  snapshot_taken_ = ts.value;
  if (!counted) oldest.store(ts.value, std::memory_order_release);
  rouse();
  return ts;
}

// txn.counts-from-bound
void TxnSystem::count_in() noexcept {
  auto& oldest = slot().oldest;
  if (oldest.load(std::memory_order_relaxed) != 0) return;
  oldest.exchange(shared_.bound.load(std::memory_order_seq_cst), std::memory_order_seq_cst);  // pairs with tick()
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
  const uint64_t now = word.load(std::memory_order_relaxed);
  if (now == 0 || (oldest && oldest->value <= now)) return;
  word.store(oldest.value_or(Cts{}).value, std::memory_order_seq_cst);
  // The member sleeps, and the node's bound is what this session has kept it at, perhaps.
  if (now < shared_.clock_at_sleep.load(std::memory_order_relaxed)) rouse();
}

}  // namespace engine
