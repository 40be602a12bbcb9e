#include "coherence/transport/tcp/tcp_transport.hpp"

#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "coherence/base/os.hpp"
#include "coherence/base/text.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/transport/net/address.hpp"
#include "coherence/transport/tcp/member/lease.hpp"
#include "coherence/transport/tcp/member/mirror_route.hpp"
#include "coherence/transport/tcp/member/patience.hpp"
#include "coherence/transport/tcp/member/pool_links.hpp"
#include "coherence/transport/tcp/member/tcp_membership.hpp"
#include "coherence/transport/tcp/member/tcp_pool.hpp"
#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "coherence/transport/tcp/message/peer_routes.hpp"
#include "coherence/transport/tcp/message/tcp_messenger.hpp"
#include "coherence/transport/tcp/network_worker.hpp"

namespace coherence::tcp {
namespace {

constexpr uint64_t kStartNs = 20'000'000'000;  // of a worker: until it reaches all
constexpr int kPassMs = int(Lease::kAgainNs / 1'000'000), kPassMsAtStart = 10;
// A peer that is away for so long is given up; memory node 0 gives this node up sooner (tcp.lease).  After a third of
// the silence the other side is asked to say something: several times in a lease.
net::LinkTimes times_of(uint32_t patience_ms) {
  return {.patience_ns = 5 * patience_ns(patience_ms), .silence_ns = patience_ns(patience_ms) / 4 * 3};
}

Result<net::Endpoints> endpoints_of(std::string_view text, const net::Credentials& credentials, Problem* problem) {
  const auto address = net::Address::parse(text, problem);
  if (!address) return address.error();
  auto endpoints = address->resolve(problem);
  if (!endpoints) return endpoints.error();
  GCL_TRY(credentials.fit(endpoints->local(), address->text(), problem));
  return endpoints;
}

Result<net::Credentials> credentials_of(const TransportSettings& settings, Problem* problem) {
  if (settings.key_file[0] != '\0') return net::Credentials::of_key_file(settings.key_file, problem);
  if (settings.certificate_file[0] == '\0') return net::Credentials::plain();
  return net::Credentials::of_certificates(settings.certificate_file, settings.certificate_key_file, settings.ca_file,
                                           problem);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

constexpr uint64_t in_pages(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

// Zeros that processes which are forked later share.
class TcpTransport::Mapping {
 public:
  static Result<std::unique_ptr<Mapping>> make(uint64_t bytes, Problem* problem) {
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      return problem->set(Errc::kNoMemory, "no %.0f MB of addresses for the network: %s", double(bytes) / 1048576,
                          strerror(errno));
    return std::unique_ptr<Mapping>(new Mapping(static_cast<std::byte*>(at), bytes));
  }
  ~Mapping() { munmap(at_, bytes_); }
  Mapping(const Mapping&) = delete;
  std::byte* take(uint64_t bytes) noexcept {
    std::byte* const part = at_ + taken_;
    taken_ += in_pages(bytes);
    VERIFY(taken_ <= bytes_);
    return part;
  }

 private:
  Mapping(std::byte* at, uint64_t bytes) : at_(at), bytes_(bytes) {}
  std::byte* const at_;
  const uint64_t bytes_;
  uint64_t taken_ = 0;
};

// Where a server's log goes: stderr.
class TcpTransport::StderrLog final : public Log {
 public:
  void line(const char* text) noexcept override {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    tm utc;
    gmtime_r(&now.tv_sec, &utc);
    char time[32];
    strftime(time, sizeof time, "%F %T", &utc);
    fprintf(stderr, "%s.%03ld UTC [%d] gcl network: %s\n", time, now.tv_nsec / 1000000, getpid(), text);
  }
};

// What the worker's process does.
class TcpTransport::Work final : private MembersChanged {
 public:
  Work(TcpTransport& of, NodeId id, uint64_t incarnation) : of_(of), id_(id), incarnation_(incarnation) {}

  bool run(const WorkerProcess::Stop& stop) {
    if (of_.worker_begins_ != nullptr) of_.worker_begins_();
    Problem problem;
    if (!begin(&problem)) {
      snprintf(of_.status_->problem, sizeof of_.status_->problem, "%s", problem.text);
      of_.status_->set_phase(WorkerStatus::kFailed);
      return false;
    }
    for (bool ready = false; !stop.load();) {
      if (!ready && (ready = is_ready())) of_.status_->set_phase(WorkerStatus::kReady);
      worker_->run_once(ready ? kPassMs : kPassMsAtStart);
      look_at_lease();
      if (pool_->look(monotonic_ns(), ready)) of_.parts_->ring_worker();
      say_who_is_lost();
    }
    peers_.reset();
    pool_.reset();
    members_.reset();
    worker_.reset();  // what sessions wait for has no known outcome
    return true;
  }

 private:
  Status begin(Problem* problem) {
    auto worker = NetworkWorker::make(*of_.port_,
                                      {.self = net::Who::node(id_, incarnation_),
                                       .cluster = of_.pool_id_,
                                       .times = times_of(of_.mirror_->patience_ms())},
                                      of_.credentials_, *of_.log_, problem);
    if (!worker) return worker.error();
    worker_ = worker.take();
    const PeerAddresses& addresses = of_;
    MembersChanged& change = *this;
    Log& log = *of_.log_;
    peers_.emplace(*of_.parts_, *of_.boxes_, worker_->links(), addresses, log);
    members_.emplace(*of_.mirror_, *of_.sayings_, worker_->memory(), change, log);
    pool_.emplace(
        worker_->memory(), *of_.mirror_, *of_.sayings_,
        [this](const char* address, Problem* why) { return endpoints_of(address, of_.credentials_, why); }, log);
    worker_->memory().set_other(&*members_);
    worker_->add(*members_);
    worker_->add(*peers_);
    worker_->set_acceptor(&*peers_);
    if (of_.make_path_) GCL_TRY(make_path(problem));
    GCL_TRY(worker_->memory().add({0}, of_.first_, problem));
    GCL_TRY(worker_->links().listen(of_.listen_, problem));
    net::Endpoint here = of_.listen_.at[0];
    here.set_port(worker_->links().port());
    snprintf(of_.status_->address, sizeof of_.status_->address, "%s", here.name().text);
    return {};
  }

  Status make_path(Problem* problem) {
    const NodeParts& parts = *of_.parts_;
    Log& log = *of_.log_;
    auto path =
        of_.make_path_({parts.frames_base, uint64_t(parts.frames) * kPageSize}, of_.listen_.at[0], log, problem);
    return path ? worker_->take_path(path.take(), problem) : Status(path.error());
  }

  // It reaches memory nodes, and each peer that serves: else its node does not join.
  bool is_ready() {
    if (const uint32_t k = pool_->missing(); k < uint32_t(kMemoryNodesMax)) {
      const net::Link* const link = worker_->memory().link({uint8_t(k)});
      return is_missing("no connection to memory node %u%s%s", k, link == nullptr ? "" : ": ",
                        link == nullptr ? "" : link->reason());
    }
    if (!table_came_) return is_missing("memory node 0 has not said who is in the pool");
    if (of_.mirror_->lease_began() == 0) return is_missing("memory node 0 has not answered");
    for (uint32_t n = 0; n < of_.mirror_->nodes_max(); n++) {
      const NodeId peer{uint8_t(n)};
      if (peer == id_ || !of_.parts_->members->info(peer).serves() || peers_->reaches(NodeSet::of(peer))) continue;
      return is_missing("node %u is in the pool, and cannot be reached", n);
    }
    return true;
  }
  [[gnu::format(printf, 2, 3)]] bool is_missing(const char* format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(of_.status_->problem, sizeof of_.status_->problem, format, args);
    va_end(args);
    return false;
  }

  void look_at_lease() {
    const bool before = of_.mirror_->is_cut_off();
    const uint64_t now = monotonic_ns();
    if (net::Link* const link = worker_->memory().link({0}); link != nullptr && link->connected()) {
      of_.mirror_->lease_begins(lease_.begins(*link));
      lease_.ask(*link, now);
    }
    if (of_.mirror_->keep_lease(now)) return;
    if (!before) of_.parts_->ring_worker();
    worker_->memory().end("the lease of this node is over");  // or sessions would wait as long as the patience lasts
  }

  void table_comes(const Table& table) noexcept override {
    table_came_ = true;
    pool_->table_comes(table);
  }

  // Two that do not reach each other would wait for each other without end (tcp.unreached-one-dies).
  void say_who_is_lost() {
    for (NodeSet left = peers_->lost(); !left.empty(); left = left.without(left.first()))
      (void)of_.sayings_->say(Said::kUnreached, left.first(), of_.parts_->members->info(left.first()).incarnation);
  }

  void members_changed() noexcept override {
    peers_->members_changed();
    of_.parts_->ring_worker();
  }

  TcpTransport& of_;
  const NodeId id_;
  const uint64_t incarnation_;
  std::unique_ptr<NetworkWorker> worker_;
  std::optional<PeerRoutes> peers_;
  std::optional<MirrorRoute> members_;
  std::optional<PoolLinks> pool_;
  bool table_came_ = false;
  Lease lease_;
};

TcpTransport::TcpTransport(net::Credentials credentials, void (*worker_begins)(), MakePath make_path) noexcept
    : credentials_(std::move(credentials)),
      worker_begins_(worker_begins),
      make_path_(std::move(make_path)),
      log_(std::make_unique<StderrLog>()) {}

TcpTransport::~TcpTransport() = default;

Result<std::unique_ptr<Transport>> TcpTransport::make(const TransportSettings& settings, Problem* problem,
                                                      MakePath make_path) {
  auto credentials = credentials_of(settings, problem);
  if (!credentials) return credentials.error();
  std::unique_ptr<TcpTransport> transport(
      new TcpTransport(credentials.take(), settings.worker_begins, std::move(make_path)));
  GCL_TRY(transport->resolve(settings, problem));
  GCL_TRY(transport->map_shared(problem));
  return std::unique_ptr<Transport>(std::move(transport));
}

Status TcpTransport::resolve(const TransportSettings& settings, Problem* problem) {
  const std::string first(trimmed(settings.memory_nodes));
  if (first.empty()) return problem->set(Errc::kIncompatible, "over tcp the address of memory node 0 is wanted");
  if (first.find(',') != std::string::npos)
    return problem->set(Errc::kIncompatible,
                        "over tcp memory node 0 alone is named, not \"%.200s\": it says where the others are",
                        first.c_str());
  auto of_first = endpoints_of(first, credentials_, problem);
  if (!of_first) return of_first.error();
  first_ = *of_first;
  auto listen = endpoints_of(trimmed(settings.listen), credentials_, problem);
  if (!listen) return listen.error();
  listen_ = *listen;
  listen_.count = 1;  // which peers are told
  if (listen_.at[0].any())
    return problem->set(Errc::kIncompatible, "%s is no address that peers can reach this node at", settings.listen);
  tool_.emplace(ToolLink::Spec{.name = first, .at = first_}, credentials_, *log_);
  return {};
}

Status TcpTransport::map_shared(Problem* problem) {
  constexpr uint64_t kBytes = in_pages(WorkerWakeup::kBytes) + in_pages(Mirror::kBytes) + in_pages(Sayings::kBytes) +
                              in_pages(sizeof(WorkerStatus));
  auto mapped = Mapping::make(kBytes, problem);
  if (!mapped) return mapped.error();
  shared_ = mapped.take();
  auto wakeup = WorkerWakeup::make(shared_->take(WorkerWakeup::kBytes), problem);
  if (!wakeup) return wakeup.error();
  worker_wakeup_ = wakeup.take();
  mirror_ = &Mirror::at(shared_->take(Mirror::kBytes));
  sayings_ = &Sayings::at(shared_->take(Sayings::kBytes));
  status_ = reinterpret_cast<WorkerStatus*>(shared_->take(sizeof(WorkerStatus)));
  return {};
}

Status TcpTransport::map_for(uint32_t nodes_max, Problem* problem) {
  const uint64_t port_bytes = Port::bytes_for(Port::kPlacesMax), boxes_bytes = PeerBoxes::bytes_for(nodes_max);
  auto mapped = Mapping::make(in_pages(port_bytes) + in_pages(boxes_bytes), problem);
  if (!mapped) return mapped.error();
  sized_ = mapped.take();
  port_.emplace(sized_->take(port_bytes), Port::kPlacesMax, *worker_wakeup_);
  boxes_.emplace(sized_->take(boxes_bytes), nodes_max, *worker_wakeup_);
  return {};
}

Result<std::unique_ptr<Pool>> TcpTransport::open_pool(const PoolFiles& files, Problem* problem) {
  auto pool = TcpPool::open(files, *tool_, *mirror_, problem);
  if (!pool) return pool.error();
  pool_id_ = (*pool)->pool_id();
  tool_->set_cluster(pool_id_);
  GCL_TRY(map_for((*pool)->nodes_max(), problem));
  return pool;
}

std::unique_ptr<Membership> TcpTransport::open_membership(Pool& pool) {
  return std::make_unique<TcpMembership>(TcpPool::of(pool),
                                         TcpMembership::Parts{*mirror_, *sayings_, *worker_wakeup_, *this, *tool_});
}

std::unique_ptr<Wakeup> TcpTransport::open_wakeup(NodeParts& node) {
  parts_ = &node;
  return std::make_unique<TcpWakeup>(node, *boxes_);
}

std::unique_ptr<Memory> TcpTransport::open_memory(NodeParts&, Counters& counters) {
  if (status_->phase.load(std::memory_order_acquire) != WorkerStatus::kReady)  // repair.alone
    return std::make_unique<ToolMemory>(*tool_);
  return std::make_unique<TcpMemory>(*port_, counters);
}

std::unique_ptr<Messenger> TcpTransport::open_messenger(NodeParts& node, Counters& counters) {
  return std::make_unique<TcpMessenger>(node, *boxes_, counters);
}

Status TcpTransport::start(NodeId id, uint64_t incarnation, Problem* problem) {
  WorkerProcess worker(*status_);
  return worker.start(
      worker_wakeup_->fd(), [&](const WorkerProcess::Stop& stop) { return Work(*this, id, incarnation).run(stop); },
      kStartNs, problem);
}

void TcpTransport::stop() noexcept { WorkerProcess(*status_).stop(); }

bool TcpTransport::address_of(NodeId node, uint64_t incarnation, char* to, size_t bytes) const noexcept {
  return mirror_->address_of(node, incarnation, to, bytes);
}

}  // namespace coherence::tcp
