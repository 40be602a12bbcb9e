// Memory: one-sided access to the pool, in batches.  The seam behind which shm, sim, tcp and verbs fit.
//
// transport.batch-in-order: the operations of a batch run in order, at ONE memory node; between batches there is no
// order.
// transport.unknown-never-success: a batch is kDone when all its operations took effect, kUnknown when the connection
// broke first: then the outcome is not known, and is never treated as success.
// transport.unknown-cuts-off: a user of a Memory learns of an unknown outcome by outcome(), wait(), run() or the
// conveniences: kFenced.  Before they say so they tell the Memory's user, a session, which cuts its node off: no
// process can tell what the words of the batch say by now.  So a caller that gets kFenced here finds the pool fenced,
// and what comes of the batch needs no undoing.
// transport.poll-until-done: post() may complete before it returns (shm) or later (verbs, sim); callers poll() until
// done().
// transport.pages-registered: a page travels between the pool and its node's arena, whose memory the transport knows
// (Registered).  Every other operation is small: a transport may copy its bytes through memory of its own.
// transport.one-thread: a Memory is used by one thread of one process, and opened after fork.
// transport.seen-in-order: what was done in order is seen in order, plain WRITEs and READs included.  A process that
// has seen what an operation did sees, with all it does next, what came before that operation, too: in its batch, in
// batches that were complete when it was posted, and in memory that the writing process had written or seen.  A
// transport over processors that reorder sees to it; no layer above needs an atomic or a fence for it.
// transport.write-then-look: neither the bytes of one WRITE or READ are in order (an aligned word is whole, though),
// nor is a WRITE there for others before an operation behind it looks.  Where each of two processes writes and then
// looks whether the other did, both write with CAS or FAA, and look with these or LOAD: those of all batches are in one
// order.
// transport.waits-counted: a wait is a round trip that the session stands still for, and counts (Counter::kAwaited),
// whether or not the transport of the day is so near that the batch is complete in post().  What was posted before
// another wait began has travelled beside that one's batch: to wait for it then counts no more.
//
//   Batch batch(node);
//   batch.faa(word, bit);
//   batch.read(page, frame, kPageSize, OnlyIf::kNoOwner);
//   GCL_TRY(memory.run(batch));
//   uint64_t old = batch.op(0).old;
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/stats/counters.hpp"

namespace coherence {

enum class Verb : uint8_t { kRead, kWrite, kCas, kFaa, kLoad };  // kLoad: one aligned word, whole, into `old`
enum class BatchState : uint8_t { kOpen, kPosted, kDone, kUnknown };

// Condition under which a READ behind an atomic is worth doing; a transport may ignore it (verbs does).
enum class OnlyIf : uint8_t {
  kAlways,
  kCasSucceeded,  // operation 0 is a CAS that swapped
  kNoOwner,       // operation 0's old value names no owner (bits 58..63 clear)
};

// Memory in the arena of this process's node: NodeParts makes them (transport.pages-registered).
class Registered {
 public:
  std::byte* at() const { return at_; }
  Registered operator+(uint64_t bytes) const { return Registered(at_ + bytes); }

 private:
  friend struct NodeParts;
  explicit Registered(std::byte* at) : at_(at) {}
  std::byte* at_;
};

struct Op {
  Verb verb;
  OnlyIf only_if;
  bool registered;   // whether `local` is
  uint32_t bytes;    // READ, WRITE
  void* local;       // READ: destination; WRITE: source
  PoolAddress at;    // CAS, FAA, LOAD: 8-byte aligned
  uint64_t operand;  // CAS: new value; FAA: addend
  uint64_t expect;   // CAS
  uint64_t old;      // CAS, FAA: the value before; LOAD: the value
};

// Whether a READ's condition holds.  `first`: operation 0, when it has taken place.
inline bool wanted(const Op& op, const Op& first) {
  switch (op.only_if) {
    case OnlyIf::kAlways:
      return true;
    case OnlyIf::kCasSucceeded:
      return first.old == first.expect;
    case OnlyIf::kNoOwner:
      return first.old >> 58 == 0;
  }
  return true;
}

inline constexpr int kBatchOpsMax = 64;

// Lives on the stack or in a worker's memory; never allocates; making one costs nothing (its operations are not
// initialised).  Must outlive its completion.
class Batch {
 public:
  explicit Batch(MemoryNodeId to) : to_(to) {}
  Batch(const Batch&) = delete;
  void read(PoolAddress at, Registered to, uint32_t bytes, OnlyIf only_if = OnlyIf::kAlways) {
    add({Verb::kRead, only_if, true, bytes, to.at(), at, 0, 0, 0});
  }
  void read(PoolAddress at, void* to, uint32_t bytes, OnlyIf only_if = OnlyIf::kAlways) {
    add({Verb::kRead, only_if, false, bytes, to, at, 0, 0, 0});
  }
  void write(PoolAddress at, Registered from, uint32_t bytes) {
    add({Verb::kWrite, OnlyIf::kAlways, true, bytes, from.at(), at, 0, 0, 0});
  }
  void write(PoolAddress at, const void* from, uint32_t bytes) {
    add({Verb::kWrite, OnlyIf::kAlways, false, bytes, const_cast<void*>(from), at, 0, 0, 0});
  }
  int cas(PoolAddress at, uint64_t expect, uint64_t desired) {
    return add({Verb::kCas, OnlyIf::kAlways, false, 8, nullptr, at, desired, expect, 0});
  }
  int faa(PoolAddress at, uint64_t addend) {
    return add({Verb::kFaa, OnlyIf::kAlways, false, 8, nullptr, at, addend, 0, 0});
  }
  int load(PoolAddress at) { return add({Verb::kLoad, OnlyIf::kAlways, false, 8, nullptr, at, 0, 0, 0}); }
  MemoryNodeId to() const { return to_; }
  int size() const { return count_; }
  bool full() const { return count_ == kBatchOpsMax; }
  int room() const { return kBatchOpsMax - count_; }
  Op& op(int i) { return ops_[i]; }
  const Op& op(int i) const { return ops_[i]; }
  bool cas_succeeded(int i) const { return ops_[i].old == ops_[i].expect; }
  bool done() const { return state.load(std::memory_order_acquire) >= BatchState::kDone; }  // pairs with poll()
  bool known() const { return state.load(std::memory_order_acquire) == BatchState::kDone; }

  std::atomic<BatchState> state{BatchState::kOpen};

 private:
  friend class Memory;
  int add(const Op& op) {
    VERIFY(count_ < kBatchOpsMax && op.at.node() == to_);  // transport.batch-in-order
    ops_[count_] = op;
    return count_++;
  }
  MemoryNodeId to_;
  uint8_t count_ = 0;
  uint32_t posted_after_ = ~uint32_t{0};  // so many waits
  union {
    Op ops_[kBatchOpsMax];  // [0, count_) are set
  };
};

// Hears of batches whose outcome is not known (transport.unknown-cuts-off).
class UnknownOutcomes {
 public:
  virtual void outcome_unknown() noexcept = 0;

 protected:
  ~UnknownOutcomes() = default;
};

class Memory {
 public:
  virtual ~Memory() = default;
  virtual void post(Batch* const* batches, int count) = 0;
  virtual void poll() = 0;  // completes posted batches; cheap when there are none
  void post(Batch& batch) {
    batch.posted_after_ = waits_;
    Batch* one = &batch;
    post(&one, 1);
  }
  // Both outlive it; without a user nobody is told, without counters nothing is counted.
  void set_user(UnknownOutcomes* user, Counters* counters) noexcept {
    user_ = user;
    counters_ = counters;
  }
  // kFenced: it is not known.  REQUIRES: done.
  Status outcome(const Batch& batch) noexcept {
    VERIFY(batch.done());
    return batch.known() ? Status() : tell_unknown();
  }
  // Polls until `batch` is done, and says its outcome.  One round trip; not interruptible (a posted verb always ends,
  // or breaks).
  Status wait(Batch& batch) {
    if (batch.posted_after_ >= waits_) count_wait();
    while (!batch.done()) poll();
    return outcome(batch);
  }
  // A wait for batches of the caller's own that are posted several at a time, and reaped.
  void count_wait() noexcept {
    ++waits_;
    if (counters_ != nullptr) counters_->add(Counter::kAwaited);
  }
  Status run(Batch& batch) {
    post(batch);
    return wait(batch);
  }
  // Conveniences for pool words: one batch each.  The value before.
  Result<uint64_t> load(PoolAddress word);
  Result<uint64_t> cas(PoolAddress word, uint64_t expect, uint64_t desired);
  Result<uint64_t> faa(PoolAddress word, uint64_t addend);

 private:
  Status tell_unknown() noexcept;
  UnknownOutcomes* user_ = nullptr;
  Counters* counters_ = nullptr;
  uint32_t waits_ = 0;
};

}  // namespace coherence
