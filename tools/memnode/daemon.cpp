#include "tools/memnode/daemon.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "coherence/region/pool_header.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/tcp/member/member_server.hpp"
#include "coherence/transport/tcp/memory/memory_server.hpp"
#include "tools/memnode/served_file.hpp"

namespace memnode {
namespace {

using coherence::Problem;
using coherence::Result;
using coherence::Status;
using coherence::tcp::MemberServer;
using coherence::tcp::MemoryServer;
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

// What is served.
struct Region {
  std::unique_ptr<ServedFile> file;       // of another memory node than 0
  std::unique_ptr<coherence::Pool> pool;  // of memory node 0: its members, too
  coherence::MemoryMap* map = nullptr;    // one of the two
  coherence::MemoryNodeId id;
  uint64_t bytes = 0, pool_id = 0;
};

// A file that is missing may be in the durable copy.
Result<bool> is_first(const Options& options, Problem* problem) {
  if (!options.saved.empty()) return true;
  auto file = ServedFile::open(options.file.c_str(), ServedFile::Use::kLook, problem);
  if (!file) return file.error();
  return (*file)->id() == coherence::MemoryNodeId{0};
}

Status open_region(const Options& options, Region* region, Problem* problem) {
  const auto first = is_first(options, problem);
  if (!first) return first.error();
  if (*first) {
    const char* const saved = options.saved.empty() ? nullptr : options.saved.c_str();
    auto pool = coherence::LocalPool::serve({.path = options.file.c_str(), .durable_path = saved}, problem);
    if (!pool) return pool.error();
    region->pool = pool.take();
    auto& mapped = coherence::MappedPool::of(*region->pool);
    region->map = &mapped;
    region->bytes = mapped.header().bytes;
    region->pool_id = mapped.pool_id();
    return {};
  }
  auto file = ServedFile::open(options.file.c_str(), ServedFile::Use::kServe, problem);
  if (!file) return file.error();
  region->file = file.take();
  region->map = region->file.get();
  region->id = region->file->id();
  region->bytes = region->file->bytes();
  region->pool_id = region->file->pool_id();
  return {};
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
      "CPU s {:.3f} user {:.3f} system",
      f.links, f.batches, f.operations, f.bytes_in, f.bytes_out, f.ended, seconds(used.ru_utime),
      seconds(used.ru_stime));
}

uint64_t start_number() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

Status serve(const Options& options, Stderr& log, Problem* problem) {
  Region region;
  GCL_TRY(open_region(options, &region, problem));
  auto credentials = credentials_of(options, problem);
  if (!credentials) return credentials.error();
  const Signals signals;
  coherence::Counters counters{};
  coherence::ShmMemory memory(*region.map, counters);
  const uint64_t start = start_number();
  const uint64_t patience_ns = uint64_t(options.patience_s) * 1'000'000'000;
  const net::Credentials shown = *credentials;
  log.line(what_is(options, region.id, region.pool_id, region.bytes).c_str());
  std::unique_ptr<MemberServer> members;
  if (region.pool != nullptr) {
    auto made = MemberServer::make(coherence::MappedPool::of(*region.pool),
                                   {.pool = options.file, .start = start, .patience_ns = patience_ns}, log, problem);
    if (!made) return made.error();
    members = made.take();
  }
  auto server = MemoryServer::make(memory,
                                   {.id = region.id,
                                    .bytes = region.bytes,
                                    .start = start,
                                    .cluster = region.pool_id,
                                    .times = {.patience_ns = patience_ns,
                                              // Asked after a third of it, a node has several times to answer.
                                              .silence_ns = patience_ns / 2},
                                    .other = members.get()},
                                   credentials.take(), log, problem);
  if (!server) return server.error();
  GCL_TRY((*server)->watch(signals.fd(), problem));
  for (const std::string& address : options.listen) {
    auto endpoints = endpoints_of(address, shown, problem);
    if (!endpoints) return endpoints.error();
    GCL_TRY((*server)->listen(*endpoints, problem));
    log.line(fmt::format("listens on {}{}", address, shown.is_plain() ? ", unprotected" : "").c_str());
  }
  if (const uint16_t port = (*server)->port(); port != 0) log.line(fmt::format("its port is {}", port).c_str());
  for (int signal = 0; signal != SIGTERM && signal != SIGINT; signal = signals.take()) {
    if (signal == SIGUSR1) log.line(figures_of(**server).c_str());
    (*server)->turn(-1);
  }
  (*server)->stop();
  log.line(figures_of(**server).c_str());
  log.line("has stopped");
  return {};
}

Status check(const Options& options, Problem* problem) {
  auto region = ServedFile::open(options.file.c_str(), ServedFile::Use::kLook, problem);
  if (!region) return region.error();
  auto credentials = credentials_of(options, problem);
  if (!credentials) return credentials.error();
  fmt::print("{}\n", what_is(options, (*region)->id(), (*region)->pool_id(), (*region)->bytes()));
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
  signal(SIGPIPE, SIG_IGN);  // who reads what is logged may have left
  Stderr log;
  Problem problem;
  if (serve(options, log, &problem)) return 0;
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
