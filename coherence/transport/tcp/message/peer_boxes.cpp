#include "coherence/transport/tcp/message/peer_boxes.hpp"

#include <climits>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"

namespace coherence::tcp {
namespace {

constexpr uint32_t kSliceMs = 10;

// Headers, rounded up to where the first box begins.
constexpr uint64_t kHeaderBytes = 4096;

}  // namespace

uint64_t PeerBoxes::bytes_for(uint32_t nodes_max) noexcept {
  // The memory begins at any multiple of 64, the boxes at one of 4096.
  return kHeaderBytes + 4096 + uint64_t(nodes_max) * sizeof(Box);
}

// What is zero has the meaning that it needs: free entries, nothing left.  So nothing is touched before it is used.
PeerBoxes::PeerBoxes(void* memory, uint32_t nodes_max, WorkerWakeup& worker_wakeup) noexcept
    : header_(static_cast<Header*>(memory)),
      box_(reinterpret_cast<Box*>((uintptr_t(memory) + kHeaderBytes + 4095) / 4096 * 4096)),
      nodes_max_(nodes_max),
      worker_wakeup_(worker_wakeup) {
  static_assert(sizeof(Header) <= kHeaderBytes);
  VERIFY(nodes_max > 0 && nodes_max <= uint32_t(kNodesMax) && uintptr_t(memory) % 64 == 0);
}

// box.left-as-bits
void PeerBoxes::leave(NodeId to, Inbox& bits, uint32_t slot) noexcept {
  bits.bits[slot / 64].fetch_or(uint64_t{1} << slot % 64, std::memory_order_seq_cst);
  bits.words_set.fetch_or(uint64_t{1} << slot / 64, std::memory_order_seq_cst);
  left_for(to);
}

void PeerBoxes::left_for(NodeId to) noexcept {
  header_->left_for.fetch_or(NodeSet::of(to).bits, std::memory_order_seq_cst);
  worker_wakeup_.signal();
}

void PeerBoxes::leave_wakeup(NodeId to, uint16_t event, uint16_t otherwise) noexcept {
  Box& box = box_[to.value];
  box.wake[event].fetch_or(uint64_t{1} << otherwise, std::memory_order_seq_cst);
  box.woken.fetch_or(1u << event, std::memory_order_seq_cst);
  left_for(to);
}

// An event's bit may come when what it wakes was taken already, by the bit of the wakeup before: then there is none.
void PeerBoxes::take_wakeups(NodeId from, Wakeups* to) noexcept {
  Box& box = box_[from.value];
  to->events = 0;
  for (uint32_t left = box.woken.exchange(0, std::memory_order_seq_cst); left; left &= left - 1) {
    const int event = std::countr_zero(left);
    to->otherwise[event] = box.wake[event].exchange(0, std::memory_order_seq_cst);
    if (to->otherwise[event] != 0) to->events |= 1u << event;
  }
}

// --- what waits for the worker

bool PeerBoxes::ends_waits(const std::atomic<uint32_t>& fence) const noexcept {
  return header_->closed.load(std::memory_order_seq_cst) != 0 || fence.load(std::memory_order_acquire) != 0 ||
         worker_wakeup_.worker_is_gone();
}

void PeerBoxes::wait(std::atomic<uint32_t>& word, uint32_t seen, std::atomic<uint32_t>& waiting) noexcept {
  waiting.fetch_add(1, std::memory_order_seq_cst);  // pairs with wake()
  futex_wait(word, seen, kSliceMs);
  waiting.fetch_sub(1, std::memory_order_relaxed);
}

// Behind the change of the word.
void PeerBoxes::wake(std::atomic<uint32_t>& word, std::atomic<uint32_t>& waiting) noexcept {
  if (waiting.load(std::memory_order_seq_cst) != 0) futex_wake(word, INT_MAX);
}

bool PeerBoxes::put(Grants& grants, CompleteGrant grant, const std::atomic<uint32_t>& fence) noexcept {
  const SpinGuard guard(grants.lock, &fence);
  if (fence.load(std::memory_order_acquire) != 0) return true;  // perhaps without the lock; the node's death says it
  const uint32_t put = grants.put.load(std::memory_order_relaxed);
  if (put - grants.taken.load(std::memory_order_seq_cst) == kGrantsMax) return false;  // pairs with take_grants()
  grants.grant[put % kGrantsMax] = grant;
  grants.put.store(put + 1, std::memory_order_release);  // pairs with take_grants()
  return true;
}

// The worker empties the ring each time that it is awake, whatever peers do.
void PeerBoxes::leave_grant(NodeId to, CompleteGrant grant, const std::atomic<uint32_t>& fence) noexcept {
  Grants& grants = box_[to.value].grants;
  for (;;) {
    const uint32_t taken = grants.taken.load(std::memory_order_seq_cst);
    const bool left = put(grants, grant, fence);
    left_for(to);
    if (left || ends_waits(fence)) return;
    wait(grants.taken, taken, grants.waiting);
  }
}

void PeerBoxes::flush(const std::atomic<uint32_t>& fence) noexcept {
  const uint32_t mine = header_->flush_asked.fetch_add(1, std::memory_order_seq_cst) + 1;  // behind what was left
  worker_wakeup_.signal();
  for (;;) {
    const uint32_t done = header_->flush_done.load(std::memory_order_acquire);  // pairs with flushed()
    if (int32_t(done - mine) >= 0 || ends_waits(fence)) return;
    wait(header_->flush_done, done, header_->flushing);
  }
}

void PeerBoxes::flushed(uint32_t number) noexcept {
  header_->flush_done.store(number, std::memory_order_seq_cst);
  wake(header_->flush_done, header_->flushing);
}

}  // namespace coherence::tcp
