// NetworkWorker: the loop that has a node's sockets: it takes batches from the Port, sends them to their memory nodes,
// and gives back what came of them.
//
// One thread.  Its process has the node's arena and the Port at the same addresses as the sessions.
//
// tcp.answers-have-room: Of a memory node, batches whose results together may be longer than its window are not under
// way at once: so it never has to wait before it answers.  Those in excess stay in the Port, in order.
//
//   auto worker = NetworkWorker::make(*port, {.self = ..., .credentials = ...}, log, &problem);
//   for (each memory node) (*worker)->add(id, endpoints, &problem);
//   while (!ended) (*worker)->turn(1000);
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/links.hpp"
#include "coherence/transport/tcp/entry_queue.hpp"
#include "coherence/transport/tcp/log.hpp"
#include "coherence/transport/tcp/port.hpp"

namespace coherence::tcp {

class NetworkWorker final : private net::LinksOwner {
 public:
  struct Spec {
    net::Who self;         // this incarnation of the node
    uint64_t cluster = 0;  // memory nodes have the same
    uint32_t window = 4u << 20;
    net::LinkTimes times = {};
  };
  // `port` and `log` outlive it.
  static Result<std::unique_ptr<NetworkWorker>> make(Port& port, const Spec&, net::Credentials, Log& log, Problem*);
  // Ends all links.  Batches that have no result, and those that are posted later, have no known outcome.
  ~NetworkWorker();
  NetworkWorker(const NetworkWorker&) = delete;

  // A memory node, which is connected to from the next turn on.  Batches to others have no known outcome.
  Status add(MemoryNodeId, const net::Endpoints&, Problem*);
  // Sends what is posted and receives what is there.  Sleeps for `ms` at most if there is nothing to do; Port::ring()
  // and signals end that.
  void turn(int ms);

 private:
  // To one memory node.
  struct Route {
    net::Link* link = nullptr;  // null: not there, or over
    EntryQueue posted, sent;
    uint64_t awaited = 0;  // bytes that the results of `sent` take at most
    uint32_t next_tag = 0;
  };
  NetworkWorker(Port& port, Log& log);
  void take_posted();
  void send(Route&);
  bool send_first(Route&);
  void finish(PortEntry&, bool known);
  void give_up(Route&);
  Route& route_of(net::Link& link) { return *static_cast<Route*>(link.context); }

  void frame(net::Link&, uint16_t type, std::span<const std::byte> payload) override;
  void begun(net::Link&) override;
  void disconnected(net::Link&) override;
  void reconnected(net::Link&) override;
  void room(net::Link& link) override { send(route_of(link)); }
  void over(net::Link&) override;
  void ready(int) override { port_.silence_bell(); }
  void log(const char* line) override { log_.line(line); }

  Port& port_;
  Log& log_;
  Route route_[kMemoryNodesMax];
  const std::unique_ptr<std::byte[]> frame_;  // of the request that is being sent
  std::unique_ptr<net::Links> links_;
};

}  // namespace coherence::tcp
