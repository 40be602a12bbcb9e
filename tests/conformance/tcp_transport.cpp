#include "tcp_transport.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "tests/support/cutting_proxy.hpp"
#include "tests/support/tcp_nodes.hpp"
#include "tests/support/verbs_nodes.hpp"

namespace conformance {
namespace {

using gcl_test::As;

enum class Carrier { kTcp, kBrokenConnections, kVerbs };

// Breaks the link of the node that asks it, when so many operations of the batch have taken place.
class BreakingMemory final : public Memory {
 public:
  BreakingMemory(MemoryMap& map, Counters& counters, int after) : shm_(map, counters), after_(after) {}
  using Memory::post;
  void post(Batch* const* batches, int count) override {
    for (int i = 0; i < count; i++) break_one(*batches[i]);
  }
  void poll() override {}

 private:
  void break_one(Batch& batch) {
    Batch part(batch.to());
    for (int i = 0; i < after_; i++) {
      const Op& op = batch.op(i);
      if (op.verb == Verb::kRead) part.read(op.at, op.local, op.bytes, op.only_if);
      if (op.verb == Verb::kWrite) part.write(op.at, op.local, op.bytes);
      if (op.verb == Verb::kCas) part.cas(op.at, op.expect, op.operand);
      if (op.verb == Verb::kFaa) part.faa(op.at, op.operand);
      if (op.verb == Verb::kLoad) part.load(op.at);
    }
    shm_.post(part);
    batch.state.store(BatchState::kUnknown, std::memory_order_release);
  }
  ShmMemory shm_;
  const int after_;
};

// A node of its own for one batch, whose link breaks at it; with threads, as no user forks while it lives.
class Doomed {
 public:
  Doomed(const gcl_test::SocketDirectory& directory, Carrier carrier, MemoryNodeId to, std::byte* at, int after,
         int number)
      : memory_node_(memory_node(directory, carrier, to, at, after, number)),
        node_(node(directory, carrier, to, memory_node_.address(), after)),
        memory_(node_.port(), counters_) {}
  Memory& memory() { return memory_; }

 private:
  static gcl_test::ServedNode::Spec memory_node(const gcl_test::SocketDirectory& directory, Carrier carrier,
                                                MemoryNodeId to, std::byte* at, int after, int number) {
    gcl_test::ServedNode::Spec spec{.id = to,
                                    .at = at,
                                    .bytes = kMemoryBytes,
                                    .listen = directory.socket("doomed" + std::to_string(number)),
                                    .key = directory.key(),
                                    .as = As::kThread};
    if (carrier == Carrier::kVerbs)
      spec.access = gcl_test::access_at(gcl_test::rdma_addresses()->memory_node);
    else
      spec.memory = [after](MemoryMap& map, Counters& counters) -> std::unique_ptr<Memory> {
        return std::make_unique<BreakingMemory>(map, counters, after);
      };
    return spec;
  }
  static gcl_test::WorkedPort::Spec node(const gcl_test::SocketDirectory& directory, Carrier carrier, MemoryNodeId to,
                                         const std::string& address, int after) {
    gcl_test::WorkedPort::Spec spec{
        .places = 1, .memory_nodes = {{to, address}}, .key = directory.key(), .as = As::kThread};
    if (carrier == Carrier::kVerbs)
      spec.path = [after](tcp::Log& log) -> std::unique_ptr<tcp::DirectPath> {
        return std::make_unique<gcl_test::RefusedPath>(gcl_test::path_at(gcl_test::rdma_addresses()->node)(log), after,
                                                       kMemoryBytes);
      };
    return spec;
  }
  gcl_test::ServedNode memory_node_;
  gcl_test::WorkedPort node_;
  Counters counters_{};
  tcp::TcpMemory memory_;
};

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(Carrier carrier) : carrier_(carrier) {
    const bool broken_connections = carrier == Carrier::kBrokenConnections;
    const std::string key = broken_connections ? "" : directory_.key();
    gcl_test::WorkedPort::Spec node{.key = key};
    if (carrier == Carrier::kVerbs) node.path = gcl_test::path_at(gcl_test::rdma_addresses()->node);
    for (uint8_t n = 0; n < kMemoryNodes; n++) {
      const bool tcp = !broken_connections && n == 0;
      const std::string name = "memory" + std::to_string(n), near = "proxy" + std::to_string(n);
      memory_nodes_.push_back(std::make_unique<gcl_test::ServedNode>(
          gcl_test::ServedNode::Spec{.id = {n},
                                     .at = at({n}),
                                     .bytes = kMemoryBytes,
                                     .listen = tcp ? "127.0.0.1:0" : directory_.socket(name),
                                     .key = key,
                                     .access = access_of(carrier)}));
      std::string address = memory_nodes_.back()->address();
      if (broken_connections) {
        proxies_.push_back(std::make_unique<gcl_test::CuttingProxy>(
            directory_.path() + "/" + near, directory_.path() + "/" + name, kBytesOfAConnection, n + 1u));
        address = directory_.socket(near);
      }
      node.memory_nodes.emplace_back(MemoryNodeId{n}, address);
    }
    node_ = std::make_unique<gcl_test::WorkedPort>(node);
  }
  ~TcpTransport() override {
    node_.reset();
    for (const auto& memory_node : memory_nodes_) EXPECT_EQ(memory_node->links_ended(), 0u);
  }
  std::unique_ptr<User> user() override { return std::make_unique<TcpUser>(*this); }

 private:
  static constexpr size_t kBytesOfAConnection = 16 << 10;
  static std::function<std::unique_ptr<tcp::DirectAccess>(std::span<std::byte>, tcp::Log&)> access_of(Carrier carrier) {
    if (carrier != Carrier::kVerbs) return nullptr;
    return gcl_test::access_at(gcl_test::rdma_addresses()->memory_node);
  }

  // The batch behind break_after() goes by a node of its own, all others by the node.
  class BreakableMemory final : public Memory {
   public:
    BreakableMemory(TcpTransport& of, Counters& counters) : of_(of), memory_(of.node_->port(), counters) {}
    using Memory::post;
    void post(Batch* const* batches, int count) override {
      for (int i = 0; i < count; i++) {
        if (!break_after_) {
          memory_.post(*batches[i]);
          continue;
        }
        const MemoryNodeId to = batches[i]->to();
        doomed_.push_back(
            std::make_unique<Doomed>(of_.directory_, of_.carrier_, to, of_.at(to), *break_after_, ++of_.number_));
        break_after_.reset();
        doomed_.back()->memory().post(*batches[i]);
      }
    }
    void poll() override {
      memory_.poll();
      for (const auto& one : doomed_) one->memory().poll();
    }
    void break_after(int operations) { break_after_ = operations; }

   private:
    TcpTransport& of_;
    tcp::TcpMemory memory_;
    std::optional<int> break_after_;
    std::vector<std::unique_ptr<Doomed>> doomed_;
  };
  class TcpUser final : public User {
   public:
    explicit TcpUser(TcpTransport& of) : memory_(of, counters_) {}
    Memory& memory() override { return memory_; }
    std::byte* local() override { return local_; }
    void break_after(int operations) override { memory_.break_after(operations); }

   private:
    Counters counters_{};
    BreakableMemory memory_;
    alignas(64) std::byte local_[kLocalBytes] = {};
  };

  std::byte* at(MemoryNodeId n) const { return bytes_.at() + n.value * kMemoryBytes; }

  const Carrier carrier_;
  gcl_test::SocketDirectory directory_;
  gcl_test::SharedBytes bytes_{kMemoryNodes * kMemoryBytes};
  std::vector<std::unique_ptr<gcl_test::ServedNode>> memory_nodes_;
  std::vector<std::unique_ptr<gcl_test::CuttingProxy>> proxies_;
  std::unique_ptr<gcl_test::WorkedPort> node_;
  int number_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_tcp() { return std::make_unique<TcpTransport>(Carrier::kTcp); }
std::unique_ptr<Transport> make_verbs() { return std::make_unique<TcpTransport>(Carrier::kVerbs); }
std::unique_ptr<Transport> make_tcp_over_broken_connections() {
  return std::make_unique<TcpTransport>(Carrier::kBrokenConnections);
}

}  // namespace conformance
