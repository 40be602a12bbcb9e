#include "transport.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "coherence/transport/shm/shm_memory.hpp"

namespace conformance {
namespace {

// shm: the memory nodes are mappings that all processes share.
class ShmTransport final : public Transport {
 public:
  ShmTransport() {
    for (std::byte*& base : bases_) {
      void* at = mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (at == MAP_FAILED) perror("mmap"), abort();
      base = static_cast<std::byte*>(at);
    }
  }
  ~ShmTransport() override {
    for (std::byte* base : bases_) munmap(base, kMemoryBytes);
  }
  std::unique_ptr<User> user() override { return std::make_unique<ShmUser>(bases_); }

 private:
  class ShmUser final : public User {
   public:
    explicit ShmUser(std::span<std::byte* const> bases) : memory_(bases, counters_) {}
    Memory& memory() override { return memory_; }
    std::byte* local() override { return local_; }

   private:
    Counters counters_{};
    ShmMemory memory_;
    alignas(64) std::byte local_[kLocalBytes] = {};
  };
  std::byte* bases_[kMemoryNodes];
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
