#include "transport.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <utility>

#include "coherence/transport/shm/shm_memory.hpp"
#include "tcp_transport.hpp"
#include "tests/support/far_memory.hpp"
#include "tests/support/verbs_nodes.hpp"

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

// What is on its way arrives while its sender polls, in any order.  No thread: users may fork.
class PolledNetwork final : public gcl_test::Network {
 public:
  explicit PolledNetwork(uint32_t seed) : random_(seed) {}
  void carry(std::function<void()> arrival) override { under_way_.push_back(std::move(arrival)); }
  void wait() override {
    if (under_way_.empty()) return;
    std::swap(under_way_[random_() % under_way_.size()], under_way_.back());
    const std::function<void()> arrival = std::move(under_way_.back());
    under_way_.pop_back();
    arrival();
  }
  std::optional<int> breaks_after(int) override { return std::exchange(breaks_after_, std::nullopt); }
  bool one_in(uint32_t n) override { return random_() % n == 0; }
  void break_after(int operations) { breaks_after_ = operations; }

 private:
  std::minstd_rand random_;
  std::vector<std::function<void()>> under_way_;
  std::optional<int> breaks_after_;
};

// far: batches travel, over the same mappings.
class FarTransport final : public Transport {
 public:
  std::unique_ptr<User> user() override { return std::make_unique<FarUser>(mappings_, ++users_); }

 private:
  class FarUser final : public User {
   public:
    FarUser(MemoryMap& map, uint32_t seed)
        : network_(seed), memory_(std::make_unique<ShmMemory>(map, counters_), network_) {}
    Memory& memory() override { return memory_; }
    std::byte* local() override { return local_; }
    void break_after(int operations) override { network_.break_after(operations); }

   private:
    Counters counters_{};
    PolledNetwork network_;
    gcl_test::FarMemory memory_;
    alignas(64) std::byte local_[kLocalBytes] = {};
  };
  Mappings mappings_;
  std::atomic<uint32_t> users_{0};
};

template <class T>
std::unique_ptr<Transport> make() {
  return std::make_unique<T>();
}

std::vector<TransportKind> all_transports() {
  std::vector<TransportKind> all = {
      {.name = "shm", .make = make<ShmTransport>, .done_in_post = true, .keeps_unwanted = true, .breaks = false},
      {.name = "far", .make = make<FarTransport>, .done_in_post = false, .keeps_unwanted = false, .breaks = true},
      {.name = "tcp", .make = make_tcp, .done_in_post = false, .keeps_unwanted = true, .breaks = true},
      {.name = "tcp_over_broken_connections",
       .make = make_tcp_over_broken_connections,
       .done_in_post = false,
       .keeps_unwanted = true,
       .breaks = false},
  };
  if (gcl_test::rdma_addresses())
    all.push_back(
        {.name = "verbs", .make = make_verbs, .done_in_post = false, .keeps_unwanted = false, .breaks = true});
  return all;
}

}  // namespace

const std::vector<TransportKind>& transports() {
  static const std::vector<TransportKind> all = all_transports();
  return all;
}

std::vector<TransportKind> breaking_transports() {
  std::vector<TransportKind> some;
  std::copy_if(transports().begin(), transports().end(), std::back_inserter(some),
               [](const TransportKind& kind) { return kind.breaks; });
  return some;
}

}  // namespace conformance
