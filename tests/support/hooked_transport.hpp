// HookedTransport: the transport of one machine, which shows each batch to a test before the batch is posted.
#pragma once

#include <functional>
#include <memory>

#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/shm/shm_transport.hpp"

namespace gcl_test {

class HookedTransport final : public coherence::ShmTransport {
 public:
  // Called by the session that posts.  REQUIRES, to be set: no session works.
  std::function<void(const coherence::Batch&)> on_post;

  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts& node, coherence::Counters& counters) override {
    return std::make_unique<HookedMemory>(coherence::MappedPool::of(node.pool), counters, *this);
  }

 private:
  class HookedMemory final : public coherence::Memory {
   public:
    HookedMemory(coherence::MemoryMap& map, coherence::Counters& counters, HookedTransport& by)
        : shm_(map, counters), by_(by) {}
    using Memory::post;
    void post(coherence::Batch* const* batches, int count) override {
      for (int i = 0; i < count; ++i) {
        if (by_.on_post) by_.on_post(*batches[i]);
        shm_.post(*batches[i]);
      }
    }
    void poll() override { shm_.poll(); }

   private:
    coherence::ShmMemory shm_;
    HookedTransport& by_;
  };
};

}  // namespace gcl_test
