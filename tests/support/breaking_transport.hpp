// BreakingTransport: the transport of one machine, until its connection breaks: a batch takes place, or not, and no
// process learns which.
#pragma once

#include <atomic>
#include <memory>

#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/shm/shm_transport.hpp"

namespace gcl_test {

class BreakingTransport final : public coherence::ShmTransport {
 public:
  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts& node, coherence::Counters& counters) override {
    return std::make_unique<BreakingMemory>(coherence::MappedPool::of(node.pool), counters, *this);
  }
  // From the batch on that is posted after `batches` more, whichever session posts it.
  void break_after(int batches) { left_.store(batches); }
  void heal() { left_.store(kNever); }  // for the next pool
  bool took_place = false;              // what is posted from then on

 private:
  static constexpr int kNever = 1 << 30;
  class BreakingMemory final : public coherence::Memory {
   public:
    BreakingMemory(coherence::MemoryMap& map, coherence::Counters& counters, BreakingTransport& by)
        : shm_(map, counters), by_(by) {}
    using Memory::post;
    void post(coherence::Batch* const* batches, int count) override {
      for (int i = 0; i < count; i++) {
        const bool breaks = by_.left_.fetch_sub(1) <= 0;
        if (!breaks || by_.took_place) shm_.post(*batches[i]);
        if (breaks) batches[i]->state.store(coherence::BatchState::kUnknown, std::memory_order_release);
      }
    }
    void poll() override { shm_.poll(); }

   private:
    coherence::ShmMemory shm_;
    BreakingTransport& by_;
  };
  std::atomic<int> left_{kNever};
};

}  // namespace gcl_test
