#include "transport.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "coherence/transport/shm/shm_memory.hpp"

namespace conformance {
namespace {

// shm: the memory nodes are mappings that all processes share.
class Mappings final : public MemoryMap {
 public:
  Mappings() {
    for (int n = 0; n < kMemoryNodes; n++) {
      void* at = mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (at == MAP_FAILED) perror("mmap"), abort();
      set_base(MemoryNodeId{uint8_t(n)}, static_cast<std::byte*>(at));
    }
  }
  ~Mappings() override {
    for (int n = 0; n < kMemoryNodes; n++) munmap(mapped(MemoryNodeId{uint8_t(n)}), kMemoryBytes);
  }

 private:
  std::byte* map_late(MemoryNodeId) noexcept override { abort(); }
};

class ShmTransport final : public Transport {
 public:
  std::unique_ptr<User> user() override { return std::make_unique<ShmUser>(mappings_); }

 private:
  class ShmUser final : public User {
   public:
    explicit ShmUser(MemoryMap& map) : memory_(map, counters_) {}
    Memory& memory() override { return memory_; }
    std::byte* local() override { return local_; }

   private:
    Counters counters_{};
    ShmMemory memory_;
    alignas(64) std::byte local_[kLocalBytes] = {};
  };
  Mappings mappings_;
};

template <class T>
std::unique_ptr<Transport> make() {
  return std::make_unique<T>();
}

}  // namespace

const std::vector<TransportKind>& transports() {
  static const std::vector<TransportKind> all = {
      {.name = "shm", .make = make<ShmTransport>, .done_in_post = true, .keeps_unwanted = true},
  };
  return all;
}

}  // namespace conformance
