// Memory nodes and nodes of the tcp transport, on one machine, with their loops beside the test.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/tcp/memory/memory_server.hpp"
#include "coherence/transport/tcp/network_worker.hpp"
#include "tests/support/beside.hpp"
#include "tests/support/eventually.hpp"

namespace gcl_test {

using coherence::MemoryNodeId;
namespace net = coherence::net;
namespace tcp = coherence::tcp;

// A directory that goes with the test, also if that is killed (tests.killed-leaves-nothing): then an heir removes it, a
// process that waits until nobody has the other end of a pipe.  A key for the cluster and sockets lie in it.
class SocketDirectory {
 public:
  SocketDirectory() {
    if (mkdtemp(path_.data()) == nullptr || pipe2(alive_, O_CLOEXEC) != 0) perror("directory"), abort();
    const pid_t middle = fork();
    if (middle == 0) {
      if (fork() == 0) outlive();
      _exit(0);
    }
    waitpid(middle, nullptr, 0);
    close(alive_[0]);
    const int fd = open(key().c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    const std::string digits(64, 'c');
    if (fd < 0 || write(fd, digits.data(), digits.size()) != ssize_t(digits.size())) perror("key"), abort();
    close(fd);
  }
  ~SocketDirectory() {
    if (owner_ == getpid()) std::filesystem::remove_all(path_);
    close(alive_[1]);
  }
  SocketDirectory(const SocketDirectory&) = delete;
  std::string key() const { return path_ + "/key"; }
  std::string socket(const std::string& name) const { return "unix:" + path_ + "/" + name; }
  std::string path() const { return path_; }

 private:
  void outlive() const {
    setsid();
    close(alive_[1]);
    char none;
    while (read(alive_[0], &none, 1) < 0 && errno == EINTR) {
    }
    std::error_code gone;
    std::filesystem::remove_all(path_, gone);
    _exit(0);
  }
  const pid_t owner_ = getpid();
  int alive_[2];
  std::string path_ = "/tmp/gcl-test-XXXXXX";
};

// `what` must be a value: a test cannot go on without it.
template <class T>
T must(coherence::Result<T> what, const coherence::Problem& problem) {
  if (!what) fprintf(stderr, "%s\n", problem.text), abort();
  return what.take();
}
inline void must(coherence::Status what, const coherence::Problem& problem) {
  if (!what) fprintf(stderr, "%s\n", problem.text), abort();
}

inline net::Endpoints endpoints(const std::string& address) {
  coherence::Problem problem;
  const net::Address parsed = must(net::Address::parse(address, &problem), problem);
  return must(parsed.resolve(&problem), problem);
}
// Of a key file; an empty name: none.
inline net::Credentials credentials(const std::string& key) {
  coherence::Problem problem;
  return key.empty() ? net::Credentials::plain() : must(net::Credentials::of_key_file(key.c_str(), &problem), problem);
}

// GCL_LOG=1: on stderr.
class TestLog final : public tcp::Log {
 public:
  explicit TestLog(const char* who) : who_(who) {}
  void line(const char* text) noexcept override {
    if (getenv("GCL_LOG")) fprintf(stderr, "%s: %s\n", who_, text);
  }

 private:
  const char* const who_;
};

inline uint64_t cpu_of_thread_ns() {
  timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return uint64_t(used.tv_sec) * 1'000'000'000 + uint64_t(used.tv_nsec);
}

// One memory node's memory, in this process; the server of it has it at the same place.
class OneRegion final : public coherence::MemoryMap {
 public:
  OneRegion(MemoryNodeId id, std::byte* at) { set_base(id, at); }

 private:
  std::byte* map_late(MemoryNodeId) noexcept override { abort(); }
};

// A memory node with a server beside the test.
class ServedNode {
 public:
  struct Spec {
    MemoryNodeId id;
    std::byte* at = nullptr;
    uint64_t bytes = 0;
    std::string listen;  // with port 0: of the system's choice
    std::string key;
    uint64_t start = 1;
    net::LinkTimes times = {};
    As as = As::kProcess;
    // Instead of the memory itself; made beside the test.
    std::function<std::unique_ptr<coherence::Memory>(coherence::MemoryMap&, coherence::Counters&)> memory =
        [](coherence::MemoryMap& map, coherence::Counters& counters) {
          return std::make_unique<coherence::ShmMemory>(map, counters);
        };
    // What nodes do with it directly; made beside the test.
    std::function<std::unique_ptr<tcp::DirectAccess>(std::span<std::byte>, tcp::Log&)> access = nullptr;
  };
  explicit ServedNode(const Spec& spec)
      : spec_(spec), server_(spec.as, [this](const Beside::Over& over) { serve(over); }) {
    if (!eventually([&] { return shared().listens.load(); })) abort();
  }
  MemoryNodeId id() const { return spec_.id; }
  std::string address() const {
    const bool chosen = spec_.listen.ends_with(":0");
    return chosen ? spec_.listen.substr(0, spec_.listen.size() - 1) + std::to_string(shared().port.load())
                  : spec_.listen;
  }
  // Of the server, some milliseconds ago.
  uint64_t links() const { return shared().links.load(); }
  uint64_t links_ended() const { return shared().ended.load(); }
  uint64_t batches() const { return shared().batches.load(); }
  uint64_t cpu_ns() const { return shared().cpu_ns.load(); }  // of its thread
  pid_t pid() const { return server_.pid(); }

 private:
  struct Shared {
    std::atomic<uint32_t> port;
    std::atomic<bool> listens;
    std::atomic<uint64_t> links, ended, batches, cpu_ns;
  };
  Shared& shared() const { return *reinterpret_cast<Shared*>(bytes_.at()); }
  void serve(const Beside::Over& over) {
    coherence::Problem problem;
    TestLog log("memory node");
    coherence::Counters counters{};
    OneRegion region(spec_.id, spec_.at);
    const auto memory = spec_.memory(region, counters);
    const auto access = spec_.access ? spec_.access({spec_.at, spec_.bytes}, log) : nullptr;
    auto server = must(
        tcp::MemoryServer::make(
            *memory,
            {.id = spec_.id, .bytes = spec_.bytes, .start = spec_.start, .times = spec_.times, .access = access.get()},
            credentials(spec_.key), log, &problem),
        problem);
    must(server->listen(endpoints(spec_.listen), &problem), problem);
    shared().port.store(server->port());
    shared().listens.store(true);
    while (!over.load()) {
      server->run_once(10);
      const auto figures = server->figures();
      shared().links.store(figures.links);
      shared().ended.store(figures.ended);
      shared().batches.store(figures.batches);
      shared().cpu_ns.store(cpu_of_thread_ns());
    }
    server->stop();
  }

  const Spec spec_;
  SharedBytes bytes_{sizeof(Shared)};
  Beside server_;  // last: it uses all else
};

// A port in memory that forked processes share.
class SharedPort {
 public:
  explicit SharedPort(int places) : bytes_(tcp::WorkerWakeup::kBytes + tcp::Port::bytes_for(places)) {
    coherence::Problem problem;
    worker_wakeup_ = must(tcp::WorkerWakeup::make(bytes_.at(), &problem), problem);
    port_.emplace(static_cast<std::byte*>(bytes_.at()) + tcp::WorkerWakeup::kBytes, places, *worker_wakeup_);
  }
  tcp::Port& port() { return *port_; }

 private:
  SharedBytes bytes_;
  std::unique_ptr<tcp::WorkerWakeup> worker_wakeup_;
  std::optional<tcp::Port> port_;
};

// A node: the port, and a network worker beside the test.  Sessions are made of port().
class WorkedPort {
 public:
  struct Spec {
    int places = 16;
    std::vector<std::pair<MemoryNodeId, std::string>> memory_nodes;  // and their addresses
    std::string key;
    uint8_t node = 0;
    uint64_t start = 1, cluster = 0;
    net::LinkTimes times = {};
    As as = As::kProcess;
    // By which batches go instead of the links; made beside the test.
    std::function<std::unique_ptr<tcp::DirectPath>(tcp::Log&)> path = nullptr;
  };
  explicit WorkedPort(const Spec& spec) : spec_(spec), port_(spec.places) {
    worker_ = std::make_unique<Beside>(spec.as, [this](const Beside::Over& over) { work(over); });
  }
  tcp::Port& port() { return port_.port(); }
  // Of the worker's thread, some milliseconds ago.
  uint64_t cpu_ns() const { return cpu().load(); }
  // The worker ends, and with it all links.
  void end_worker() { worker_.reset(); }

 private:
  void work(const Beside::Over& over) {
    coherence::Problem problem;
    TestLog log("node");
    auto worker = must(
        tcp::NetworkWorker::make(
            port(), {.self = net::Who::node({spec_.node}, spec_.start), .cluster = spec_.cluster, .times = spec_.times},
            credentials(spec_.key), log, &problem),
        problem);
    if (spec_.path) must(worker->take_path(spec_.path(log), &problem), problem);
    for (const auto& [id, address] : spec_.memory_nodes)
      must(worker->memory().add(id, endpoints(address), &problem), problem);
    while (!over.load()) {
      worker->run_once(10);
      cpu().store(cpu_of_thread_ns());
    }
  }
  std::atomic<uint64_t>& cpu() const { return *reinterpret_cast<std::atomic<uint64_t>*>(cpu_bytes_.at()); }

  const Spec spec_;
  SharedPort port_;
  SharedBytes cpu_bytes_{sizeof(std::atomic<uint64_t>)};
  std::unique_ptr<Beside> worker_;
};

}  // namespace gcl_test
