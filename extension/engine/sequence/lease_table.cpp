#include "extension/engine/sequence/lease_table.hpp"

#include <sched.h>

namespace engine {

class LeaseTable::Hold {
 public:
  explicit Hold(std::atomic<uint32_t>& word) : word_(word) {
    while (word_.exchange(1, std::memory_order_acquire) != 0) sched_yield();  // pairs with the release below
  }
  ~Hold() { word_.store(0, std::memory_order_release); }
  Hold(const Hold&) = delete;

 private:
  std::atomic<uint32_t>& word_;
};

SequenceRun LeaseTable::take(coherence::PageId page, uint64_t generation, uint64_t wanted) noexcept {
  Slot& slot = slot_of(page);
  Hold hold(slot.lock);
  if (slot.lease.page != page || slot.lease.generation != generation) return {};
  return slot.lease.left.take(wanted, slot.lease.step);
}

void LeaseTable::put(const Lease& lease) noexcept {
  Slot& slot = slot_of(lease.page);
  Hold hold(slot.lock);
  slot.lease = lease;
}

bool LeaseTable::look(coherence::PageId page, uint64_t generation, Lease* to) noexcept {
  Slot& slot = slot_of(page);
  Hold hold(slot.lock);
  if (slot.lease.page != page || slot.lease.generation != generation) return false;
  *to = slot.lease;
  return true;
}

}  // namespace engine
