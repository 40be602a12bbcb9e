#include "extension/engine/sequence/lease_table.hpp"

#include "coherence/base/os.hpp"

namespace engine {

using coherence::SpinGuard;

SequenceRun LeaseTable::take(coherence::PageId page, uint64_t generation, uint64_t wanted) noexcept {
  Slot& slot = slot_of(page);
  SpinGuard hold(slot.lock);
  if (slot.lease.page != page || slot.lease.generation != generation) return {};
  return slot.lease.left.take(wanted, slot.lease.step);
}

void LeaseTable::put(const Lease& lease) noexcept {
  Slot& slot = slot_of(lease.page);
  SpinGuard hold(slot.lock);
  slot.lease = lease;
}

bool LeaseTable::find(coherence::PageId page, uint64_t generation, Lease* to) noexcept {
  Slot& slot = slot_of(page);
  SpinGuard hold(slot.lock);
  if (slot.lease.page != page || slot.lease.generation != generation) return false;
  *to = slot.lease;
  return true;
}

}  // namespace engine
