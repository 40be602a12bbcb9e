#include "coherence/transport/tcp/member/sayings.hpp"

#include <cstdio>

#include "coherence/base/verify.hpp"
#include "coherence/region/node_table.hpp"

namespace coherence::tcp {

static_assert(kFenceReasonBytes == sizeof NodeTable::fence_reason);

Sayings& Sayings::at(void* memory) noexcept {
  VERIFY(uintptr_t(memory) % 64 == 0);
  return *static_cast<Sayings*>(memory);
}

bool Sayings::say(Said what, NodeId of, uint64_t incarnation) noexcept {
  std::atomic<uint64_t>& word = said_[uint8_t(what)][of.value];
  uint64_t before = word.load(std::memory_order_relaxed);
  while (before < incarnation)
    if (word.compare_exchange_weak(before, incarnation, std::memory_order_release)) {  // pairs with said()
      changed();
      return true;
    }
  return false;
}

void Sayings::leaves() noexcept {
  leaving_.store(1, std::memory_order_release);  // pairs with leaving()
  changed();
}

void Sayings::fences(const char* reason) noexcept {
  uint32_t nobody = kReasonNone;
  if (!fences_.compare_exchange_strong(nobody, kReasonClaimed, std::memory_order_acq_rel)) return;
  snprintf(fence_reason_, sizeof fence_reason_, "%s", reason);
  fences_.store(kReasonWritten, std::memory_order_release);  // pairs with fence_reason()
  changed();
}

void Sayings::reaches(uint32_t memory_nodes) noexcept {
  if (reached_.exchange(memory_nodes, std::memory_order_relaxed) != memory_nodes) changed();
}

uint64_t Sayings::said(Said what, NodeId of) const noexcept {
  return said_[uint8_t(what)][of.value].load(std::memory_order_acquire);  // pairs with say()
}

const char* Sayings::fence_reason() const noexcept {
  return fences_.load(std::memory_order_acquire) == kReasonWritten ? fence_reason_ : nullptr;  // pairs with fences()
}

}  // namespace coherence::tcp
