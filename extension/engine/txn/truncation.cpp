// Truncation of the status log: reserving ids, and the marks.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "extension/engine/txn/transaction.hpp"
#include "extension/engine/txn/txn_notes.hpp"

namespace engine {

using coherence::Batch;

namespace {

constexpr uint64_t kReserveStep = 1024;
constexpr uint64_t kFreezeStep = 2048;
constexpr int kFullPauses = 200;  // of kFullPauseMs each, in which nothing has moved, before an id is refused
constexpr uint32_t kFullPauseMs = 5;

// Held across a few batches by one process of the node; a process killed in between takes the node with it.
class Flag {
 public:
  explicit Flag(std::atomic<uint32_t>& word) : word_(word) {
    held_ = word_.exchange(1, std::memory_order_acquire) == 0;  // pairs with the release below
  }
  ~Flag() {
    if (held_) word_.store(0, std::memory_order_release);
  }
  Flag(const Flag&) = delete;
  bool held() const { return held_; }

 private:
  std::atomic<uint32_t>& word_;
  bool held_;
};

}  // namespace

// A word is cleared for its next id only after the low-water mark in the pool has passed its last one
// (txn.mark-before-clearing).
Status TxnSystem::extend_reserved() {
  uint64_t seen = 0;
  for (int pauses = 0;;) {
    if (pool_.fenced()) return Errc::kFenced;
    {
      Flag flag(shared_.extending);
      uint64_t from = shared_.reserved.load(std::memory_order_acquire);
      if (shared_.next.load(std::memory_order_relaxed) <= from) return {};
      if (!flag.held()) {
        sched_yield();
        continue;
      }
      uint64_t slots = words_.slots();
      uint64_t low = shared_.low_water.load(std::memory_order_acquire);
      uint64_t upto = std::min({from + kReserveStep, from + slots / 4, low + slots});
      if (upto > from) {
        note_reserved(pool_.log(), upto);  // txn.ids-noted-before-use
        GCL_TRY(clear_words(from + 1, upto - from));
        Batch batch(words_.clock().node());
        batch.write(words_.reserved(node_), &upto, sizeof upto);
        GCL_TRY(run_unordered(batch));
        shared_.reserved.store(upto, std::memory_order_release);  // pairs with assign()
        return {};
      }
    }
    // The ring is full: the overflow lags behind, or too many of its ids run for too long (txn.running-id-pinned).
    GCL_TRY(tick());
    const uint64_t low = shared_.low_water.load(std::memory_order_acquire);
    if (low + words_.slots() > shared_.reserved.load(std::memory_order_acquire)) continue;
    if (low != std::exchange(seen, low)) pauses = 0;  // others were faster, but ids there are
    if (++pauses > kFullPauses) return Errc::kNoIds;
    GCL_TRY(waiter_.pause(kFullPauseMs));
  }
}

Status TxnSystem::read_log(uint64_t first, uint64_t count, StatusWord* to) {
  uint64_t slots = words_.slots();
  uint64_t part = std::min(count, slots - first % slots);
  Batch batch(words_.clock().node());
  batch.read(words_.status(TxnId::make(node_, first)), to, uint32_t(part * 8));
  if (part < count)
    batch.read(words_.status(TxnId::make(node_, first + part)), to + part, uint32_t((count - part) * 8));
  return run(batch);
}

Status TxnSystem::truncate_log() {
  Flag flag(shared_.truncating);
  if (!flag.held()) return {};
  GCL_TRY(unpin_ended());
  GCL_TRY(freeze());
  uint64_t used = shared_.next.load(std::memory_order_acquire) - shared_.low_water.load(std::memory_order_acquire);
  return used > words_.slots() / 2 ? move_to_overflow() : Status{};
}

// Passes every id that is committed and visible to all, or aborted (then it is listed first); stops at others.
Status TxnSystem::freeze() {
  uint64_t frozen = shared_.frozen.load(std::memory_order_acquire);
  uint64_t end = std::min(shared_.next.load(std::memory_order_acquire), frozen + 1 + kFreezeStep);
  if (end <= frozen + 1) return {};
  std::vector<StatusWord> log(end - frozen - 1);
  GCL_TRY(read_words(frozen + 1, log.size(), log.data()));
  // A top that was final above was so before its savepoints' words are read here: those are final, too.
  if (std::any_of(log.begin(), log.end(), [](StatusWord w) { return w.state() == TxnState::kSub; })) {
    std::vector<StatusWord> again(log.size());
    GCL_TRY(read_words(frozen + 1, again.size(), again.data()));
    for (size_t i = 0; i < log.size(); ++i)
      if (log[i].state() == TxnState::kSub) log[i] = again[i];
  }
  const auto listed_now = load(words_.aborted_count(node_));
  if (!listed_now) return listed_now.error();
  GCL_TRY(load_aborted(node_, *listed_now));
  NodeView& view = nodes_[node_.value];
  std::vector<uint64_t> aborted;
  uint64_t reached = frozen;
  for (uint64_t sequence = frozen + 1; sequence < end; ++sequence) {
    StatusWord word = log[sequence - frozen - 1];
    bool bad = word.state() == TxnState::kAborted;
    if (word.state() == TxnState::kSub) {  // parents come first, so the parent was passed
      uint64_t parent = word.parent().sequence();
      bad = std::binary_search(aborted.begin(), aborted.end(), parent);
      if (!bad && parent <= frozen) {
        auto before = listed(node_, parent);
        if (!before) return before.error();
        bad = *before;
      }
    } else if (word.state() == TxnState::kCommitted) {
      if (word.cts() > horizon()) break;
    } else if (word.state() == TxnState::kUnused) {
      if (sequence > shared_.join_base) break;  // being assigned just now
    } else if (!bad && word.state() != TxnState::kSkipped) {
      break;
    }
    if (bad) aborted.push_back(sequence);
    reached = sequence;
  }
  if (reached == frozen) return {};
  if (auto done = append_aborted(aborted); !done) {
    view = {};  // another process may go on from the count, on pages of its own
    return done.error();
  }
  uint64_t count = view.aborted;
  Batch batch(words_.clock().node());
  // The count before the mark: readers read it after the mark (txn.mark-before-clearing, transport.seen-in-order).
  batch.write(words_.aborted_count(node_), &count, sizeof count);
  batch.write(words_.frozen(node_), &reached, sizeof reached);
  uint64_t low = std::max(reached, shared_.low_water.load(std::memory_order_relaxed));
  batch.write(words_.low_water(node_), &low, sizeof low);
  GCL_TRY(run(batch));
  shared_.frozen.store(reached, std::memory_order_release);
  shared_.low_water.store(low, std::memory_order_release);
  return free_overflow(frozen, reached);
}

}  // namespace engine
