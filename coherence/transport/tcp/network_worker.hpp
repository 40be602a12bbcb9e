// NetworkWorker: the loop that has a node's sockets: it takes what the node's processes leave for it, and has each
// link's route (base/route.hpp) hear what comes.
//
// One thread.  Its process has the node's arena and the Port at the same addresses as the sessions.
//
//   auto worker = NetworkWorker::make(*port, {.self = ..., .credentials = ...}, log, &problem);
//   for (each memory node) (*worker)->memory().add(id, endpoints, &problem);
//   while (!ended) (*worker)->run_once(1000);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/links.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/base/route.hpp"
#include "coherence/transport/tcp/memory/memory_routes.hpp"
#include "coherence/transport/tcp/memory/port.hpp"

namespace coherence::tcp {

class NetworkWorker final : private net::LinksUser {
 public:
  struct Spec {
    net::Who self;         // this incarnation of the node
    uint64_t cluster = 0;  // memory nodes have the same
    uint32_t window = 4u << 20;
    net::LinkTimes times = {};
  };
  // `port` and `log` outlive it.
  static Result<std::unique_ptr<NetworkWorker>> make(Port& port, const Spec&, net::Credentials, Log& log, Problem*);
  // Ends all links.
  ~NetworkWorker();
  NetworkWorker(const NetworkWorker&) = delete;

  // All batches go by it, to memory nodes that are added later.
  Status take_path(std::unique_ptr<DirectPath>, Problem*);
  MemoryRoutes& memory() noexcept { return *memory_; }
  net::Links& links() noexcept { return *links_; }
  // Outlive it, or are taken out before.
  void add(WorkSource& source) { sources_.push_back(&source); }
  void remove(WorkSource& source) { std::erase(sources_, &source); }
  void set_acceptor(Acceptor* acceptor) noexcept { acceptor_ = acceptor; }
  // Sends what was left and receives what is there.  Sleeps for `ms` at most if there is nothing to do;
  // WorkerWakeup::signal() and signals end that.
  void run_once(int ms);

 private:
  NetworkWorker(WorkerWakeup& worker_wakeup, Log& log) : worker_wakeup_(worker_wakeup), log_(log) {}
  bool any() const noexcept;

  void frame(net::Link&, uint16_t type, std::span<const std::byte> payload) override;
  void begun(net::Link&) override;
  void disconnected(net::Link&) override;
  void reconnected(net::Link&) override;
  void room(net::Link&) override;
  void over(net::Link&) override;
  void ready(int fd) override;
  void log(const char* line) override { log_.line(line); }

  WorkerWakeup& worker_wakeup_;
  Log& log_;
  std::unique_ptr<net::Links> links_;
  std::unique_ptr<DirectPath> path_;  // null: there is none
  std::optional<MemoryRoutes> memory_;
  std::vector<WorkSource*> sources_;
  Acceptor* acceptor_ = nullptr;
};

}  // namespace coherence::tcp
