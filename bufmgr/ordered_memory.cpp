#include "bufmgr/ordered_memory.hpp"

#include "bufmgr/session.hpp"

namespace bufmgr {

void OrderedMemory::post(coherence::Batch* const* batches, int count) {
  if (session_.push_what_was_seen()) return session_.coherence_.memory().post(batches, count);
  for (int i = 0; i < count; ++i) batches[i]->state.store(coherence::BatchState::kUnknown, std::memory_order_release);
}

void OrderedMemory::poll() { session_.coherence_.memory().poll(); }

}  // namespace bufmgr
