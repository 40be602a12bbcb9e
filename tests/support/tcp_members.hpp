// The pool of memory node 0 with its members, served beside a test; and primaries that join it, each with a network
// worker beside the test.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/tcp/member/member_server.hpp"
#include "coherence/transport/tcp/member/mirror_route.hpp"
#include "coherence/transport/tcp/member/tcp_membership.hpp"
#include "coherence/transport/tcp/member/tcp_pool.hpp"
#include "coherence/transport/tcp/member/tool.hpp"
#include "tests/support/tcp_nodes.hpp"

namespace gcl_test {

using coherence::NodeId;

// Lines of a process beside the test.
class FileLog final : public tcp::Log {
 public:
  explicit FileLog(std::string file) : file_(std::move(file)) {}
  void line(const char* text) noexcept override {
    const std::string line = std::string(text) + "\n";
    const int fd = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line.data(), line.size()) != ssize_t(line.size())) perror("log");
    close(fd);
    if (getenv("GCL_LOG")) fprintf(stderr, "%s", line.c_str());
  }

 private:
  const std::string file_;
};

// Memory node 0 beside the test.
class ServedMembers {
 public:
  struct Spec {
    std::string key;  // file; empty: plain
    net::LinkTimes times = {.patience_ns = 3'000'000'000};
  };
  ServedMembers(const SocketDirectory& directory, const coherence::PoolFiles& files, const Spec& spec)
      : directory_(directory), files_(files), spec_(spec) {
    beside_.emplace(As::kProcess, [this](const Beside::Over& over) { serve(over); });
    if (!eventually([&] { return listens().load(); })) fprintf(stderr, "%s", log().c_str()), abort();
  }
  std::string address() const { return directory_.socket("memory0"); }
  std::string log() const {
    std::ifstream in(log_file());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool tells(const std::string& part) const { return log().find(part) != std::string::npos; }

 private:
  std::string log_file() const { return directory_.path() + "/memory0.log"; }
  std::atomic<bool>& listens() const { return *reinterpret_cast<std::atomic<bool>*>(shared_.at()); }
  void serve(const Beside::Over& over) {
    coherence::Problem problem;
    FileLog log(log_file());
    const auto pool = must(coherence::LocalPool::serve(files_, &problem), problem);
    auto& mapped = coherence::MappedPool::of(*pool);
    const uint64_t start = coherence::monotonic_ns();
    tcp::MemberServer members(mapped, {.pool = files_.path, .start = start, .patience_ns = spec_.times.patience_ns},
                              log);
    coherence::Counters counters{};
    coherence::ShmMemory memory(mapped, counters);
    auto server = must(tcp::MemoryServer::make(memory,
                                               {.bytes = mapped.header().bytes,
                                                .start = start,
                                                .cluster = mapped.pool_id(),
                                                .times = spec_.times,
                                                .other = &members},
                                               credentials(spec_.key), log, &problem),
                       problem);
    unlink((directory_.path() + "/memory0").c_str());
    must(server->listen(endpoints(address()), &problem), problem);
    listens().store(true);
    while (!over.load()) server->run_once(10);
  }

  const SocketDirectory& directory_;
  const coherence::PoolFiles files_;
  const Spec spec_;
  SharedBytes shared_{sizeof(std::atomic<bool>)};
  std::optional<Beside> beside_;
};

// A network worker that knows of members only, beside the test.
class MembersWorker final : public tcp::NodeWorker {
 public:
  struct Parts {
    tcp::Port& port;
    tcp::Mirror& mirror;
    tcp::Sayings& sayings;
    std::string address, key;
    uint64_t cluster = 0;
    net::LinkTimes times;
  };
  // With the pool, which the test has opened meanwhile.
  Parts* parts = nullptr;
  std::atomic<uint32_t>& changes() const { return shared().changes; }

  coherence::Status start(NodeId id, uint64_t incarnation, coherence::Problem*) override {
    listens_at_ = "127.0.0.1:" + std::to_string(6000 + id.value);
    beside_.emplace(As::kProcess, [this, id, incarnation](const Beside::Over& over) { work(id, incarnation, over); });
    return {};
  }
  const char* listens_at() const override { return listens_at_.c_str(); }
  void stop() noexcept override { beside_.reset(); }
  // It does nothing from now on, until it goes on.
  void hold() { set_held(true); }
  void go_on() { set_held(false); }
  // Where it is a thread (ThreadSanitizer) it ends instead.
  void kill() {
    if (beside_ && beside_->pid() > 0) ::kill(beside_->pid(), SIGKILL);
    beside_.reset();
  }

 private:
  struct Changed final : tcp::MembersChanged {
    explicit Changed(std::atomic<uint32_t>& count) : count(count) {}
    void members_changed() noexcept override { count.fetch_add(1); }
    std::atomic<uint32_t>& count;
  };
  void set_held(bool held) {
    shared().held.store(held);
    if (beside_ && !eventually([&] { return shared().stands.load() == held; })) abort();
  }
  void work(NodeId id, uint64_t incarnation, const Beside::Over& over) {
    coherence::Problem problem;
    TestLog log("node");
    auto worker = must(
        tcp::NetworkWorker::make(
            parts->port, {.self = net::Who::node(id, incarnation), .cluster = parts->cluster, .times = parts->times},
            credentials(parts->key), log, &problem),
        problem);
    Changed changed(changes());
    tcp::MirrorRoute members(parts->mirror, parts->sayings, worker->memory(), changed, log);
    worker->memory().set_other(&members);
    worker->add(members);
    must(worker->memory().add(MemoryNodeId{0}, endpoints(parts->address), &problem), problem);
    while (!over.load()) {
      shared().stands.store(shared().held.load());
      if (shared().stands.load())
        usleep(1000);
      else
        worker->run_once(10);
    }
  }
  struct Shared {
    std::atomic<uint32_t> changes;
    std::atomic<bool> held, stands;
  };
  Shared& shared() const { return *reinterpret_cast<Shared*>(shared_.at()); }
  SharedBytes shared_{sizeof(Shared)};
  std::string listens_at_;
  std::optional<Beside> beside_;
};

// A primary: what its processes share, and the one that joins and leaves for it.
class MemberNode {
 public:
  struct Spec {
    std::string prefix;  // of its own files
    std::string address, key;
    const char* compatibility = "";
    tcp::ToolTimes tool_times = {};
    net::LinkTimes times = {.patience_ns = 3'000'000'000};
    coherence::Interrupts* interrupts = nullptr;
  };
  explicit MemberNode(const Spec& spec)
      : spec_(spec),
        tool({.name = spec.address,
              .at = endpoints(spec.address),
              .times = spec.tool_times,
              .interrupts = spec.interrupts},
             credentials(spec.key), log_),
        parts_{port_.port(), mirror, sayings, spec.address, spec.key, 0, spec.times} {
    worker.parts = &parts_;
  }
  coherence::Status open(coherence::Problem* problem) {
    auto opened =
        tcp::TcpPool::open({.path = spec_.prefix.c_str(), .compatibility = spec_.compatibility}, tool, mirror, problem);
    if (!opened) return opened.error();
    pool = opened.take();
    parts_.cluster = pool->pool_id();
    members.emplace(tcp::TcpPool::of(*pool),
                    tcp::TcpMembership::Parts{mirror, sayings, port_.port().worker_wakeup(), worker, tool});
    return {};
  }
  coherence::Status join(uint8_t id, coherence::Problem* problem) {
    using coherence::Membership;
    GCL_TRY(members->begin_change(Membership::Patience::kWait, problem));
    coherence::Status done = pool->check_protocol(problem);
    if (done) done = become(NodeId{id}, problem);
    members->end_change();
    return done;
  }
  // REQUIRES: begin_change().
  coherence::Status become(NodeId id, coherence::Problem* problem) {
    auto reserved = members->reserve(id, problem);
    if (!reserved) return reserved.error();
    incarnation = *reserved;
    return publish(id, problem);
  }
  // REQUIRES: the incarnation is reserved.
  coherence::Status publish(NodeId id, coherence::Problem* problem) {
    char path[600];
    coherence::arena_path(*pool, id, incarnation, path, sizeof path);
    arena_ = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return members->publish(arena_, problem);
  }
  // As Node::leave().
  coherence::Status leave(bool* last, coherence::Problem* problem) {
    members->begin_leaving();
    GCL_TRY(members->begin_change(coherence::Membership::Patience::kWait, problem));
    const auto empty = members->withdraw(problem);
    coherence::Status done = empty ? coherence::Status() : coherence::Status(empty.error());
    *last = empty && *empty;
    if (*last) done = members->close(problem);
    members->end_change();
    return done;
  }
  ~MemberNode() {
    if (arena_ >= 0) close(arena_);
  }
  tcp::Port& port() { return port_.port(); }

 private:
  const Spec spec_;
  TestLog log_{"tool"};
  SharedPort port_{4};
  SharedBytes mirror_bytes_{tcp::Mirror::kBytes}, sayings_bytes_{tcp::Sayings::kBytes};
  int arena_ = -1;

 public:
  tcp::Mirror& mirror = tcp::Mirror::at(mirror_bytes_.at());
  tcp::Sayings& sayings = tcp::Sayings::at(sayings_bytes_.at());
  tcp::Tool tool;

 private:
  MembersWorker::Parts parts_;

 public:
  MembersWorker worker;
  std::unique_ptr<coherence::Pool> pool;
  std::optional<tcp::TcpMembership> members;
  uint64_t incarnation = 0;
};

}  // namespace gcl_test
