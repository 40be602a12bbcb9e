#include "tools/memnode/daemon.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "coherence/base/os.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/served_part.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/tcp/member/further_memory_node.hpp"
#include "coherence/transport/tcp/member/member_server.hpp"
#include "coherence/transport/tcp/member/patience.hpp"
#include "coherence/transport/tcp/member/tool_link.hpp"
#include "coherence/transport/tcp/memory/memory_server.hpp"
#include "coherence/transport/verbs/verbs_access.hpp"

namespace memnode {
namespace {

using coherence::LocalPool;
using coherence::Problem;
using coherence::Result;
using coherence::ServedPart;
using coherence::Status;
using coherence::tcp::FurtherMemoryNode;
using coherence::tcp::MemberServer;
using coherence::tcp::MemoryServer;
using coherence::verbs::VerbsAccess;
namespace net = coherence::net;

// Lines with the time, on stderr.
class Stderr final : public coherence::tcp::Log {
 public:
  void line(const char* text) noexcept override {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    tm utc;
    gmtime_r(&now.tv_sec, &utc);
    char time[32];
    strftime(time, sizeof time, "%F %T", &utc);
    fprintf(stderr, "%s.%03ld UTC gcl_memnode[%d]: %s\n", time, now.tv_nsec / 1000000, getpid(), text);
  }
};

// The signals that the daemon knows, as something to read.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  }
  ~Signals() { close(fd_); }
  Signals(const Signals&) = delete;
  int fd() const { return fd_; }
  int take() const {  // 0: there is none
    signalfd_siginfo one;
    return read(fd_, &one, sizeof one) == ssize_t(sizeof one) ? int(one.ssi_signo) : 0;
  }

 private:
  int fd_;
};

Result<net::Credentials> credentials_of(const Options& options, Problem* problem) {
  if (!options.key.empty()) return net::Credentials::of_key_file(options.key.c_str(), problem);
  if (!options.certificate.empty())
    return net::Credentials::of_certificates(options.certificate.c_str(), options.certificate_key.c_str(),
                                             options.authority.c_str(), problem);
  return net::Credentials::plain();
}

Result<net::Endpoints> endpoints_of(const std::string& text, const net::Credentials& credentials, Problem* problem) {
  auto address = net::Address::parse(text, problem);
  if (!address) return address.error();
  auto endpoints = address->resolve(problem);
  if (!endpoints) return endpoints.error();
  GCL_TRY(credentials.fit(endpoints->local(), text.c_str(), problem));
  return endpoints;
}

std::string what_is(const Options& options, coherence::MemoryNodeId id, uint64_t pool_id, uint64_t bytes) {
  return fmt::format("memory node {} of pool {:016x}, {} bytes in {}", id.value, pool_id, bytes, options.file);
}

// On SIGUSR1, and at the end.
std::string figures_of(const MemoryServer& server) {
  const MemoryServer::Figures f = server.figures();
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return fmt::format(
      "figures: links {}, batches {}, operations {}, bytes in {}, bytes out {}, links ended for what they sent {}, "
      "queue pairs {}, CPU s {:.3f} user {:.3f} system",
      f.links, f.batches, f.operations, f.bytes_in, f.bytes_out, f.ended, f.paths, seconds(used.ru_utime),
      seconds(used.ru_stime));
}

uint64_t start_number() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

// Serves one region until a signal comes, or `over` says that it is over.  Returns the signal; 0: it is over.
template <class Over>
int run_until_over(MemoryServer& server, const Signals& signals, Stderr& log, const Over& over) {
  int signal = 0;
  while (signal != SIGTERM && signal != SIGINT && !over()) {
    if (signal == SIGUSR1) log.line(figures_of(server).c_str());
    server.run_once(-1);
    signal = signals.take();
  }
  const bool ends = signal == SIGTERM || signal == SIGINT;
  server.stop();
  if (!ends) return 0;
  log.line(figures_of(server).c_str());
  log.line("has stopped");
  return signal;
}

class Daemon {
 public:
  Daemon(const Options& options, Stderr& log) : options_(options), log_(log), patience_ms_(options.patience_s * 1000) {}

  Status run(Problem* problem) {
    auto credentials = credentials_of(options_, problem);
    if (!credentials) return credentials.error();
    credentials_ = *credentials;
    return ServedPart::number_of(options_.file) == 0 ? serve_first(problem) : serve_further(problem);
  }

 private:
  // Memory node 0, and the pool's members.
  Status serve_first(Problem* problem) {
    const char* const saved = options_.saved.empty() ? nullptr : options_.saved.c_str();
    const auto pool = LocalPool::serve({.path = options_.file.c_str(), .durable_path = saved}, problem);
    if (!pool) return pool.error();
    auto& mapped = coherence::MappedPool::of(**pool);
    const uint64_t start = start_number();
    patience_ms_ = coherence::tcp::agree_on_patience(mapped, patience_ms_);
    say_patience("until it is started while no primary is in the pool");
    MemberServer members(mapped, {.pool = options_.file, .start = start, .patience_ns = patience_ns()}, log_);
    coherence::ShmMemory memory(mapped, counters_);
    auto access = access_to(mapped.base({0}), mapped.header().bytes, problem);
    if (!access) return access.error();
    auto server = listening(memory, mapped.header(), start, {&members, access->get()}, problem);
    if (!server) return server.error();
    (void)run_until_over(**server, signals_, log_, [] { return false; });
    return {};
  }

  // Another one, again and again: each time memory node 0 says what the pool is.
  Status serve_further(Problem* problem) {
    auto address = net::Address::parse(options_.first, problem);
    if (!address) return address.error();
    int again_ms = kAgainMs;
    for (std::string said;; again_ms = std::min(2 * again_ms, kAgainMaxMs)) {
      Problem why;
      const uint64_t began = coherence::monotonic_ns();
      bool refused = false;
      const auto endpoints = address->resolve(&why);
      if (endpoints && serve_once(*endpoints, &refused, &why)) return {};
      if (refused) return problem->set(coherence::Errc::kSystem, "%s", why.text);
      if (said != why.text) log_.line(why.text);
      said = why.text;
      if (coherence::monotonic_ns() - began > uint64_t(kAgainMaxMs) * 1'000'000) again_ms = kAgainMs;  // it served
      if (wait_for_signal(again_ms)) return {};
    }
  }

  // Ok: a signal came.  *refused: it makes no sense to try again.
  Status serve_once(const net::Endpoints& first, bool* refused, Problem* problem) {
    const auto pool = std::make_unique<coherence::PoolHeader>();
    GCL_TRY(ask_pool(first, pool.get(), problem));
    const auto part = ServedPart::open(
        {.file = options_.file, .saved = options_.saved, .pages_bytes = options_.pages_bytes}, *pool, problem);
    *refused = !part;
    if (!part) return part.error();
    coherence::ShmMemory memory(**part, counters_);
    FurtherMemoryNode members(**part, log_);
    auto access = access_to((*part)->base((*part)->id()), (*part)->part_header().bytes, problem);
    *refused = !access;
    if (!access) return access.error();
    auto server = listening(memory, (*part)->part_header(), start_number(), {&members, access->get()}, problem);
    *refused = !server;
    if (!server) return server.error();
    std::string address;
    Status done = where_it_is(**server, &address, problem);
    if (done) done = members.begin(**server, first, address, problem);
    *refused = !done;
    GCL_TRY(done);
    if (run_until_over(**server, signals_, log_, [&] { return members.is_over(); }) != 0) return {};
    return problem->set(coherence::Errc::kUnreached, "%s", members.why());
  }

  // What memory node 0 says of the pool.
  Status ask_pool(const net::Endpoints& first, coherence::PoolHeader* pool, Problem* problem) {
    const coherence::tcp::ToolTimes times{.answer_ns = uint64_t(kAnswerMs) * 1'000'000};
    auto tool = coherence::tcp::ToolLink::dial({.name = options_.first, .at = first, .times = times}, credentials_,
                                               log_, problem);
    if (!tool) return tool.error();
    GCL_TRY((*tool)->call({.call = coherence::tcp::Call::kHeader}, nullptr, problem));
    patience_ms_ = std::max(options_.patience_s * 1000, (*tool)->table()->head.patience_ms);
    say_patience("as memory node 0's");
    coherence::tcp::fill_header((*tool)->header(), pool);
    return {};
  }

  // What nodes do in the region without this process; null: nothing.
  Result<std::unique_ptr<VerbsAccess>> access_to(std::byte* at, uint64_t bytes, Problem* problem) {
    if (!options_.verbs) return std::unique_ptr<VerbsAccess>();
    const std::string& named = options_.address.empty() ? options_.listen.front() : options_.address;
    auto near = endpoints_of(named, credentials_, problem);
    if (!near) return near.error();
    auto device = coherence::verbs::Device::open(
        {.device = options_.device, .port = options_.device_port, .gid_index = options_.gid_index}, near->at[0], log_,
        problem);
    if (!device) return device.error();
    log_.line(fmt::format("nodes reach its memory by {}", (*device)->name()).c_str());
    return VerbsAccess::make(device.take(), {at, bytes}, log_, problem);
  }

  struct Services {
    coherence::tcp::OtherService* members;
    coherence::tcp::DirectAccess* access;
  };
  Result<std::unique_ptr<MemoryServer>> listening(coherence::Memory& memory, const coherence::PoolHeader& header,
                                                  uint64_t start, const Services& services, Problem* problem) {
    const coherence::MemoryNodeId id{uint8_t(header.memory_node)};
    log_.line(what_is(options_, id, header.pool_id, header.bytes).c_str());
    auto server = MemoryServer::make(memory,
                                     {.id = id,
                                      .bytes = header.bytes,
                                      .start = start,
                                      .cluster = header.pool_id,
                                      .times = {.patience_ns = patience_ns(),
                                                // Asked after a third of it, a node has several times to answer.
                                                .silence_ns = patience_ns() / 2},
                                      .other = services.members,
                                      .access = services.access},
                                     credentials_, log_, problem);
    if (!server) return server.error();
    GCL_TRY((*server)->watch(signals_.fd(), problem));
    for (const std::string& address : options_.listen) {
      auto endpoints = endpoints_of(address, credentials_, problem);
      if (!endpoints) return endpoints.error();
      GCL_TRY((*server)->listen(*endpoints, problem));
      log_.line(fmt::format("listens on {}{}", address, credentials_.is_plain() ? ", unprotected" : "").c_str());
    }
    if (const uint16_t port = (*server)->port(); port != 0) log_.line(fmt::format("its port is {}", port).c_str());
    return server;
  }

  // As primaries are told.
  Status where_it_is(const MemoryServer& server, std::string* address, Problem* problem) {
    const std::string& named = options_.address.empty() ? options_.listen.front() : options_.address;
    auto endpoints = endpoints_of(named, credentials_, problem);
    if (!endpoints) return endpoints.error();
    net::Endpoint at = endpoints->at[0];
    if (at.any())
      return problem->set(coherence::Errc::kIncompatible,
                          "%s is no address that primaries can reach this memory node at: --address names one",
                          named.c_str());
    if (at.port() == 0) at.set_port(server.port());
    *address = at.name().text;
    return {};
  }

  // Whether one came that ends it.
  bool wait_for_signal(int ms) {
    pollfd one{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
    (void)poll(&one, 1, ms);
    const int signal = signals_.take();
    return signal == SIGTERM || signal == SIGINT;
  }
  void say_patience(const char* why) {
    if (patience_ms_ == options_.patience_s * 1000) return;
    log_.line(fmt::format("its patience is {} s {}", patience_ms_ / 1000, why).c_str());
  }
  uint64_t patience_ns() const { return coherence::tcp::patience_ns(patience_ms_); }

  static constexpr int kAgainMs = 250, kAgainMaxMs = 10'000, kAnswerMs = 5000;
  const Options& options_;
  Stderr& log_;
  uint32_t patience_ms_;
  const Signals signals_;
  net::Credentials credentials_ = net::Credentials::plain();
  coherence::Counters counters_{};
};

Status check(const Options& options, Problem* problem) {
  const auto header = std::make_unique<coherence::PoolHeader>();
  {
    const coherence::File file(open(options.file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.open())
      return problem->set(coherence::Errc::kSystem, "cannot open %s: %s", options.file.c_str(), strerror(errno));
    GCL_TRY(coherence::read_header(file.fd(), options.file.c_str(), header.get(), problem));
    GCL_TRY(coherence::check_format(*header, options.file.c_str(), problem));
    GCL_TRY(coherence::check_whole(file.fd(), *header, false, options.file.c_str(), problem));
  }
  auto credentials = credentials_of(options, problem);
  if (!credentials) return credentials.error();
  fmt::print("{}\n", what_is(options, {uint8_t(header->memory_node)}, header->pool_id, header->bytes));
  for (const std::string& address : options.listen) {
    auto endpoints = endpoints_of(address, *credentials, problem);
    if (!endpoints) return endpoints.error();
    for (int i = 0; i < endpoints->count; i++)
      fmt::print("{}: {}{}\n", address, endpoints->at[i].name().text, credentials->is_plain() ? ", unprotected" : "");
  }
  return {};
}

}  // namespace

int serve(const Options& options) {
  signal(SIGPIPE, SIG_IGN);  // the reader of what is logged may have left
  Stderr log;
  Problem problem;
  if (Daemon(options, log).run(&problem)) return 0;
  log.line(problem.text);
  return 1;
}

int check(const Options& options) {
  Problem problem;
  if (check(options, &problem)) return 0;
  fmt::print(stderr, "gcl_memnode: {}\n", problem.text);
  return 1;
}

}  // namespace memnode
