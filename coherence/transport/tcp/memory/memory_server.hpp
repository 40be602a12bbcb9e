// MemoryServer: the side of a memory node: it has links of all primaries and carries out their batches, one after the
// other, each in one piece (tcp.carried-out-in-order).
//
// One thread.
//
//   auto server = MemoryServer::make(memory, {.id = id, .bytes = bytes, .start = start}, credentials, log, &problem);
//   GCL_TRY((*server)->listen(endpoints, &problem));
//   while (!ended) (*server)->run_once(1000);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "coherence/base/ids.hpp"
#include "coherence/base/os.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/net/links.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/memory/batch_frame.hpp"
#include "coherence/transport/tcp/memory/direct_path.hpp"

namespace coherence::tcp {

// What a memory node does for its peers beside batches (member/).
class OtherService {
 public:
  // Whether the peer may have this batch carried out.  An error ends the link.
  virtual Status may_run(const net::Link&, const Batch&, Problem*) noexcept = 0;
  // An error ends the link.
  virtual Status frame(net::Link&, uint16_t type, std::span<const std::byte> payload, Problem*) = 0;
  virtual void begun(net::Link&) = 0;
  virtual void disconnected(net::Link&) = 0;
  virtual void reconnected(net::Link&) = 0;
  virtual void room(net::Link&) = 0;
  virtual void over(net::Link&) = 0;  // the last call about this link
  // After each pass of the server; it sleeps no longer than so many milliseconds (-1: as long as it likes).
  virtual void after_pass() = 0;
  virtual int wait_ms() const noexcept = 0;
  // It outlives this; null: batches come as frames.
  void set_access(DirectAccess* access) noexcept { access_ = access; }

 protected:
  ~OtherService() = default;
  bool has_paths() const noexcept { return access_ != nullptr; }
  // Of a link that is not to have anything carried out any more (tcp.path-of-link).
  void close_path(const net::Link& link) noexcept {
    if (access_ != nullptr) access_->close(link);
  }
  void cut_off(net::Link& link, const char* reason) noexcept {
    close_path(link);
    link.end(reason);
  }

 private:
  DirectAccess* access_ = nullptr;
};

class MemoryServer final : private net::LinksUser {
 public:
  struct Spec {
    MemoryNodeId id;
    uint64_t bytes = 0;    // of its region: offsets are below
    uint64_t start = 0;    // grows from one start of the memory node to the next
    uint64_t cluster = 0;  // others have the same
    uint32_t window = 4u << 20;
    net::LinkTimes times = {};
    OtherService* other = nullptr;   // outlives it
    DirectAccess* access = nullptr;  // likewise; what nodes do without this process, and then only so
  };
  // `memory`, which has the region, completes what is posted at once.  It and `log` outlive the server.
  static Result<std::unique_ptr<MemoryServer>> make(Memory& memory, const Spec&, net::Credentials, Log& log, Problem*);
  ~MemoryServer();
  MemoryServer(const MemoryServer&) = delete;

  // A link that goes on until its peer, or end(), ends it; `other` hears of it.
  Result<net::Link*> dial(const net::Who& peer, const net::Endpoints& at, Problem* problem) {
    return links_->dial(peer, at, problem);
  }
  Status listen(const net::Endpoints& at, Problem* problem) { return links_->listen(at, problem); }
  uint16_t port() const noexcept { return links_->port(); }
  // run_once() returns when it is readable.
  Status watch(int fd, Problem* problem) { return links_->watch(fd, problem); }
  // Carries out what has come.  Sleeps for `ms` at most if there is nothing to do; signals end that.
  void run_once(int ms);
  // Ends all links, behind the results that are there, and tells the peers so.
  void stop();

  // Since it was made; links and paths: now.
  struct Figures {
    uint64_t batches = 0, operations = 0, bytes_in = 0, bytes_out = 0;  // bytes of requests and results
    uint64_t ended = 0;                                                 // links that sent what is none
    size_t links = 0, paths = 0;
    uint64_t up_ns = 0;
    ProcessorTime cpu;  // of the process
  };
  Figures figures() const noexcept;

 private:
  MemoryServer(Memory& memory, const Spec& spec, Log& log) : memory_(memory), spec_(spec), log_(log) {}
  Status serve(net::Link&, uint16_t type, std::span<const std::byte> payload, Problem*);
  Status tell_figures(net::Link&, std::span<const std::byte> payload, Problem*);
  Status open_path(net::Link&, std::span<const std::byte> payload, Problem*);
  void close_path(const net::Link&) noexcept;

  void frame(net::Link&, uint16_t type, std::span<const std::byte> payload) override;
  void begun(net::Link&) override;
  void disconnected(net::Link&) override;
  void reconnected(net::Link&) override;
  void room(net::Link&) override;
  void over(net::Link&) override;
  void log(const char* line) override { log_.line(line); }

  Memory& memory_;
  const Spec spec_;
  Log& log_;
  const uint64_t made_at_ = monotonic_ns();
  Figures figures_;
  ServedBatch batch_;
  std::vector<net::Link*> open_;
  std::unique_ptr<net::Links> links_;
};

// kCorrupt: an operation is outside memory node `id`, which has so many bytes, or an atomic is not on a word.
Status check_places(const Batch&, MemoryNodeId id, uint64_t bytes, Problem*) noexcept;

}  // namespace coherence::tcp
