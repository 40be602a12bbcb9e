// A transport of nodes in one process whose messages and wakeups travel by the tcp transport, between network workers
// in threads; their batches do, too, over tcp or by queue pairs, or are carried out in the pool at once.  The pool and
// its members are those of one machine.
//
//   PeersTransport transport(PeersTransport::Batches::kTravel);
//   Node::join(pool, ..., transport);
//   transport.begin(node);
//   ...
//   transport.end();  // before the nodes
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "coherence/member/node.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_transport.hpp"
#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "tests/support/tcp_peers.hpp"
#include "tests/support/verbs_nodes.hpp"

namespace gcl_test {

class PeersTransport final : public coherence::ShmTransport {
 public:
  enum class Batches { kAtOnce, kTravel, kByVerbs };
  explicit PeersTransport(Batches batches) : batches_(batches) {}
  ~PeersTransport() override { end(); }

  std::unique_ptr<coherence::Wakeup> open_wakeup(coherence::NodeParts& node) override {
    return std::make_unique<tcp::TcpWakeup>(node, of(node).shared.boxes());
  }
  std::unique_ptr<coherence::Messenger> open_messenger(coherence::NodeParts& node,
                                                       coherence::Counters& counters) override {
    return std::make_unique<tcp::TcpMessenger>(node, of(node).shared.boxes(), counters);
  }
  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts& node, coherence::Counters& counters) override {
    if (batches_ == Batches::kAtOnce) return ShmTransport::open_memory(node, counters);
    return std::make_unique<tcp::TcpMemory>(of(node).shared.port(), counters);
  }

  // The node has joined: its worker begins.
  void begin(coherence::NodeParts& node) {
    Member& member = of(node);
    PeerWorker::Spec spec;
    if (batches_ != Batches::kAtOnce) spec.memory_nodes = memory_nodes(node.pool);
    if (batches_ == Batches::kByVerbs)
      spec.path = path_at(rdma_addresses()->node, {node.frames_base, uint64_t(node.frames) * coherence::kPageSize});
    member.worker = std::make_unique<Beside>(As::kThread, [this, &member, &node, spec](const Beside::Over& over) {
      member.shared.begin(node, sockets_, log_, spec);
      while (!over.load()) member.shared.run_once(10);
      member.shared.end();
    });
  }
  void begin(coherence::Node& node) { begin(node.parts()); }
  // All workers end, and what their nodes shared is gone.
  void end() {
    for (auto& [node, member] : members_) member->worker.reset();
    members_.clear();
    memory_nodes_.clear();
  }

 private:
  struct Member {
    explicit Member(uint32_t nodes_max) : shared(nodes_max, kPlaces) {}
    PeerWorker shared;
    std::unique_ptr<Beside> worker;  // last: it uses the others
  };
  static constexpr int kPlaces = 128;

  Member& of(coherence::NodeParts& node) {
    std::lock_guard guard(mutex_);
    std::unique_ptr<Member>& member = members_[&node];
    if (!member) member = std::make_unique<Member>(node.pool.nodes_max());
    return *member;
  }
  std::vector<std::pair<coherence::MemoryNodeId, std::string>> memory_nodes(coherence::Pool& pool) {
    std::vector<std::pair<coherence::MemoryNodeId, std::string>> all;
    coherence::MappedPool& mapped = coherence::MappedPool::of(pool);
    for (uint8_t n = 0; n < pool.memory_nodes(); n++) {
      if (n == memory_nodes_.size())
        memory_nodes_.push_back(std::make_unique<ServedNode>(ServedNode::Spec{
            .id = {n},
            .at = mapped.base({n}),
            .bytes = mapped.header(n).bytes,
            .listen = directory_.socket("memory" + std::to_string(n) + "." + std::to_string(starts_++)),
            .as = As::kThread,
            .access = batches_ == Batches::kByVerbs ? access_at(rdma_addresses()->memory_node) : nullptr}));
      all.emplace_back(MemoryNodeId{n}, memory_nodes_[n]->address());
    }
    return all;
  }

  const Batches batches_;
  const SocketDirectory directory_;
  const PeerSockets sockets_{directory_};
  TestLog log_{"peers"};
  int starts_ = 0;
  std::vector<std::unique_ptr<ServedNode>> memory_nodes_;
  std::mutex mutex_;
  std::map<const coherence::NodeParts*, std::unique_ptr<Member>> members_;
};

}  // namespace gcl_test
