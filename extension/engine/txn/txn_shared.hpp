// TxnShared: a node's transaction state that all its processes see.  Standard layout, no pointers; zeroed, then
// TxnSystem::join() fills it.  The host allocates bytes_for(sessions) in memory mapped by all processes of the node.
//
//   auto* shared = TxnShared::create(memory, sessions, slots_max);   // before the first process is forked
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "coherence/base/verify.hpp"
#include "coherence/message/slots.hpp"

namespace engine {

// A savepoint that has written and may yet be rolled back alone.
struct OpenLevel {
  std::atomic<uint64_t> id;        // raw; 0: none
  std::atomic<uint32_t> host_xid;  // the host's number of it, set before `id`; 0: it has none
};

struct alignas(64) TxnSessionSlot {
  static constexpr uint32_t kOpenMax = 31;
  std::atomic<uint64_t> oldest;     // oldest timestamp needed; 0: none
  std::atomic<uint64_t> top;        // raw top id of the running transaction; 0: none
  std::atomic<uint32_t> host_xid;   // the host's number of it, set before `top`
  std::atomic<uint32_t> unlisted;   // 1: `open` is incomplete: an id is being assigned, or the levels are too many
  std::atomic<uint64_t> host_lock;  // the host's name of its speculation, set before the pool's word
  OpenLevel open[kOpenMax];         // by nesting level, from 2 on
};

struct TxnShared {
  uint32_t sessions;
  uint32_t slots_max;                      // cap on status words per node; the same on all nodes of a pool
  alignas(64) std::atomic<uint64_t> next;  // next sequence to assign; 0: not joined
  std::atomic<uint64_t> reserved;          // sequences up to here may be assigned
  std::atomic<uint64_t> low_water, frozen;
  uint64_t join_base;                       // sequences up to here belong to former incarnations
  alignas(64) std::atomic<uint64_t> bound;  // published node bound (a copy of the pool's word)
  std::atomic<uint64_t> horizon;            // grows
  std::atomic<uint64_t> adopted;            // timestamps taken over (txn.timestamp-handover-counted)
  std::atomic<uint64_t> present;            // nodes that count, as a NodeSet
  std::atomic<uint64_t> clock_at_sleep;     // as the member worker found it before it fell asleep
  std::atomic<uint32_t> member_sleeps;      // 1: a session that clears it wakes the member worker
  // Slots that have ever had a session; said before the session fills its slot, so that the others need not be read.
  alignas(64) std::atomic<uint64_t> taken[(coherence::kSessionsMax + 63) / 64];
  alignas(64) std::atomic<uint32_t> extending;  // 1: a session reserves more sequences
  std::atomic<uint32_t> truncating;             // 1: a session advances the marks
  // Sequences at or below low_water whose words are still in the ring, of ids that run (txn.running-id-pinned); 0:
  // free.  Written by the session that truncates: set before low_water passes the id, cleared after its place was.
  static constexpr uint32_t kPinnedMax = 256;
  std::atomic<uint64_t> pinned[kPinnedMax];

  TxnSessionSlot* slots() { return reinterpret_cast<TxnSessionSlot*>(this + 1); }
  TxnSessionSlot& slot(uint32_t session) {
    VERIFY(session < sessions);
    return slots()[session];
  }

  void take(uint32_t session) {
    const uint64_t bit = uint64_t{1} << session % 64;
    if ((taken[session / 64].load(std::memory_order_relaxed) & bit) == 0)
      taken[session / 64].fetch_or(bit, std::memory_order_seq_cst);  // pairs with publish_bound()
  }
  // Calls f(session) for each that has been taken.
  template <class F>
  void for_each_taken(F f) const {
    for (uint32_t first = 0; first < sessions; first += 64)
      for (uint64_t bits = taken[first / 64].load(std::memory_order_seq_cst); bits != 0; bits &= bits - 1)
        f(first + uint32_t(std::countr_zero(bits)));
  }

  static size_t bytes_for(uint32_t sessions) { return sizeof(TxnShared) + sessions * sizeof(TxnSessionSlot); }
  // `memory` is 64-byte aligned and has bytes_for(sessions) bytes.  slots_max ~0: what the pool's region holds.
  static TxnShared* create(void* memory, uint32_t sessions, uint32_t slots_max = ~uint32_t{0}) {
    auto* shared = new (memory) TxnShared{};
    shared->sessions = sessions;
    shared->slots_max = slots_max;
    for (uint32_t i = 0; i < sessions; ++i) new (shared->slots() + i) TxnSessionSlot{};
    return shared;
  }
};
static_assert(sizeof(TxnShared) % 64 == 0);

// The oldest timestamp that sessions of the node need, from one slot after the other.
class OldestNeeded {
 public:
  OldestNeeded(TxnShared& shared, uint64_t now)
      : shared_(shared), adopted_(shared.adopted.load(std::memory_order_seq_cst)), oldest_(now) {}
  void add(uint32_t session) {
    const uint64_t oldest = shared_.slot(session).oldest.load(std::memory_order_seq_cst);
    if (oldest != 0 && oldest < oldest_) oldest_ = oldest;
  }
  // 0, which bounds nothing, if a timestamp may have been missed: handed from a slot read later to one read earlier
  // (txn.timestamp-handover-counted).
  uint64_t bound() const {
    const bool none = shared_.adopted.load(std::memory_order_seq_cst) == adopted_;  // pairs with adopt_snapshot()
    return none ? oldest_ : 0;
  }

 private:
  TxnShared& shared_;
  const uint64_t adopted_;
  uint64_t oldest_;
};

}  // namespace engine
