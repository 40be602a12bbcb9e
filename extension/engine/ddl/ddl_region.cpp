#include "extension/engine/ddl/ddl_region.hpp"

#include <algorithm>

#include "coherence/base/verify.hpp"

namespace engine {

using coherence::Batch;
using coherence::PoolAddress;

DdlRegion::DdlRegion(coherence::Memory& memory, PoolAddress at, uint64_t bytes, uint32_t nodes_max,
                     coherence::NodeId self)
    : memory_(memory), at_(at), nodes_max_(nodes_max), self_(self) {
  const uint64_t room = bytes - kDdlSlots, least = window_offset() + kDdlWindowBytesMin;
  VERIFY(bytes > kDdlSlots && room >= least);
  slots_ = int(std::min<uint64_t>(room / least, kDdlSlotsMax));
  slot_bytes_ = uint32_t(std::min<uint64_t>(room / uint64_t(slots_), window_offset() + kDdlWindowBytesMax) & ~63ull);
  window_bytes_ = slot_bytes_ - window_offset();
}

bool DdlRegion::run(Batch& batch) {
  if (!lost_) lost_ = !memory_.run(batch);
  return !lost_;
}

void DdlRegion::store(PoolAddress at, uint64_t value) {
  uint64_t seen = load(at);
  while (!lost_ && seen != value) {
    const auto before = memory_.cas(at, seen, value);
    if (before && *before == seen) return;
    seen = known(before);
  }
}

}  // namespace engine
