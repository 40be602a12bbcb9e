// TcpTransport: a node whose memory nodes and peers are reached over a network.
//
// What its processes share is mapped when the pool is opened: the wakeup of the worker, the mirror, what the node says,
// and the worker's status in one mapping; the Port and the PeerBoxes in another, whose size depends on the pool.  Of
// the latter what is never used takes no memory; where the system is strict about what it has promised
// (vm.overcommit_memory = 2), it counts all the same.
//
// Before the node's worker is there (Node::join()) the process that joins reaches memory node 0 by a tool's link.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "coherence/member/transport.hpp"
#include "coherence/transport/net/credentials.hpp"
#include "coherence/transport/settings.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"
#include "coherence/transport/tcp/member/node_worker.hpp"
#include "coherence/transport/tcp/member/sayings.hpp"
#include "coherence/transport/tcp/member/tool.hpp"
#include "coherence/transport/tcp/memory/direct_path.hpp"
#include "coherence/transport/tcp/memory/port.hpp"
#include "coherence/transport/tcp/message/peer_addresses.hpp"
#include "coherence/transport/tcp/message/peer_boxes.hpp"
#include "coherence/transport/tcp/process/worker_process.hpp"

namespace coherence::tcp {

class TcpTransport final : public Transport, private NodeWorker, private PeerAddresses {
 public:
  // In the worker's process: another way for batches.  `frames`: the node's, which pages travel from and to;
  // `listens_at`: where peers reach this node.
  using MakePath = std::function<Result<std::unique_ptr<DirectPath>>(std::span<std::byte> frames,
                                                                     const net::Endpoint& listens_at, Log&, Problem*)>;
  // kIncompatible: a setting is wrong; kNotFound: a name, or a file, is not there; kSystem.  Without `make_path`
  // batches go as frames.
  static Result<std::unique_ptr<Transport>> make(const TransportSettings&, Problem*, MakePath make_path = nullptr);
  ~TcpTransport() override;

  Result<std::unique_ptr<Pool>> open_pool(const PoolFiles&, Problem*) override;
  std::unique_ptr<Membership> open_membership(Pool&) override;
  std::unique_ptr<Wakeup> open_wakeup(NodeParts&) override;
  std::unique_ptr<Memory> open_memory(NodeParts&, Counters&) override;
  std::unique_ptr<Messenger> open_messenger(NodeParts&, Counters&) override;

 private:
  class Mapping;
  class StderrLog;
  class Work;
  TcpTransport(net::Credentials credentials, void (*worker_begins)(), MakePath make_path) noexcept;
  Status resolve(const TransportSettings&, Problem*);
  Status map_shared(Problem*);
  Status map_for(uint32_t nodes_max, Problem*);

  Status start(NodeId, uint64_t incarnation, Problem*) override;
  const char* listens_at() const override { return status_->address; }
  void stop() noexcept override;
  bool address_of(NodeId, uint64_t incarnation, char* to, size_t bytes) const noexcept override;

  const net::Credentials credentials_;
  void (*const worker_begins_)();
  const MakePath make_path_;
  net::Endpoints first_, listen_;  // memory node 0; of this node
  std::unique_ptr<StderrLog> log_;
  std::unique_ptr<Mapping> shared_, sized_;
  std::unique_ptr<WorkerWakeup> worker_wakeup_;
  Mirror* mirror_ = nullptr;
  Sayings* sayings_ = nullptr;
  WorkerStatus* status_ = nullptr;
  std::optional<Port> port_;
  std::optional<PeerBoxes> boxes_;
  std::optional<Tool> tool_;
  uint64_t pool_id_ = 0;
  NodeParts* parts_ = nullptr;  // of the node that joins
};

}  // namespace coherence::tcp
