// An in-process cluster for tests of everything below extension/pg: N nodes over one shm pool, each with a serving and
// a provider thread and a log in memory.  Sessions are made per test thread.
//
//   gcl_test::Cluster cluster({.nodes = 3, .frames = 64});
//   auto session = cluster.session(1);                       // node 1
//   auto page = cluster.pool(1).fix_exclusive(*session, id);
//   ...                                                      // the destructor stops every node in order
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/mini_transaction.hpp"

namespace gcl_test {

// Sees what the nodes of a cluster log, and the pool that they leave behind.
class ClusterWatcher {
 public:
  virtual ~ClusterWatcher() = default;
  virtual void appended(std::span<const std::byte> record) = 0;  // called by the session that appends it, under latches
  virtual void left(const std::string& path) = 0;                // all nodes have left in order
  // A program whose clusters are all watched sets this before main().
  static inline std::unique_ptr<ClusterWatcher> (*make)() = nullptr;
};

// A log in memory.  By default everything is durable at once; with `lazy`, only what was asked for by request_flush().
class MemoryLog final : public bufmgr::LogSink {
 public:
  explicit MemoryLog(bool lazy = false) : lazy_(lazy) {}
  coherence::Lsn append(std::span<const std::byte> record) override {
    if (watcher_ != nullptr) watcher_->appended(record);
    if (on_append_) on_append_();
    std::lock_guard hold(mutex_);
    if (keep_) records_.emplace_back(record.begin(), record.end());
    end_ += record.size();
    if (!lazy_) flushed_.store(end_);
    return {end_};
  }
  void note(std::span<const std::byte> bytes) override {
    std::lock_guard hold(mutex_);
    if (keep_) notes_.emplace_back(bytes.begin(), bytes.end());
    end_ += bytes.size();
    if (!lazy_) flushed_.store(end_);
  }
  void flush_notes() override {
    if (on_flush_) on_flush_();
    std::lock_guard hold(mutex_);
    flushed_.store(end_);
  }
  coherence::Lsn flushed() override {
    if (on_look_) on_look_();
    return {flushed_.load()};
  }
  void request_flush(coherence::Lsn lsn) override {
    requests_.fetch_add(1);
    if (stuck_.load()) return;
    uint64_t seen = flushed_.load();
    while (seen < lsn.value && !flushed_.compare_exchange_weak(seen, lsn.value)) {
    }
    if (auto* node = node_.load()) node->ring();
  }
  // Flushes fail to happen until set back.
  void set_stuck(bool stuck) { stuck_.store(stuck); }
  void keep_records(bool keep) { keep_ = keep; }
  void set_watcher(ClusterWatcher* watcher) { watcher_ = watcher; }
  // Called whenever the log is asked how far it is flushed: for each changed page that is to leave.  REQUIRES: no
  // session of the node works.
  void set_look(std::function<void()> on_look) { on_look_ = std::move(on_look); }
  // Called by a session that is at work on a record (log.work-is-marked).  REQUIRES: as above.
  void set_on_append(std::function<void()> on_append) { on_append_ = std::move(on_append); }
  // Called by a session that has its notes flushed, before they are.  REQUIRES: as above.
  void set_on_flush(std::function<void()> on_flush) { on_flush_ = std::move(on_flush); }
  coherence::Lsn end() {
    std::lock_guard hold(mutex_);
    return {end_};
  }
  std::vector<std::vector<std::byte>> records() {
    std::lock_guard hold(mutex_);
    return records_;
  }
  std::vector<std::vector<std::byte>> notes() {
    std::lock_guard hold(mutex_);
    return notes_;
  }
  size_t noted() {
    std::lock_guard hold(mutex_);
    return notes_.size();
  }
  uint64_t requests() const { return requests_.load(); }
  void set_node(coherence::Node* node) { node_.store(node); }

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> records_, notes_;
  uint64_t end_ = 0;
  bool lazy_, keep_ = false;
  ClusterWatcher* watcher_ = nullptr;
  std::atomic<uint64_t> flushed_{0}, requests_{0};
  std::atomic<bool> stuck_{false};
  std::atomic<coherence::Node*> node_{nullptr};
  std::function<void()> on_look_, on_append_, on_flush_;
};

// Interrupts that a test switches on.
class Switch final : public bufmgr::Interrupts {
 public:
  bool pending() noexcept override { return on_.load(); }
  void set(bool on) { on_.store(on); }

 private:
  std::atomic<bool> on_{false};
};

// Interrupts some of the waits of all sessions that have it, whatever else runs on the machine.
class Nuisance final : public bufmgr::Interrupts {
 public:
  explicit Nuisance(uint32_t one_in) : one_in_(one_in) {}
  bool pending() noexcept override {
    uint64_t asked = asked_.fetch_add(1) * 0x9e3779b97f4a7c15;
    asked ^= asked >> 29;
    return asked % one_in_ == 0;
  }

 private:
  const uint32_t one_in_;
  std::atomic<uint64_t> asked_{1};
};

struct ClusterOptions {
  int nodes = 3;
  uint32_t frames = 1024;
  uint64_t pool_bytes = 64 << 20;
  uint32_t memory_nodes = 2;  // one is the simpler case
  uint64_t ring_bytes = 0;    // 0: as the pool's size suggests
  uint64_t status_words = 0;
  uint32_t sessions_max = 32;
  uint64_t extra_bytes = 1 << 20;
  uint32_t nodes_max = bufmgr::kNodesDefault;
  bool repairs_deaths = false, records_deaths = false;
  bool lazy_log = false;
  bool keep_records = false;
  bool workers = true;
  bufmgr::ReplacementKind replacement = bufmgr::ReplacementKind::kEpochSampling;
  coherence::Transport* transport = nullptr;  // of node 0; null: shm
  coherence::PoolRepair* alone = nullptr;
};

// Pages of both memory nodes, in turn.  REQUIRES: `count` even, at most 128.
inline std::vector<bufmgr::PageId> pages_of_two_memory_nodes(bufmgr::BufferPool& pool, bufmgr::Session& session,
                                                             int count) {
  auto one = pool.allocate(session, 64), two = pool.allocate(session, 64);
  EXPECT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->node(), two->node());
  std::vector<bufmgr::PageId> pages;
  for (int i = 0; i < count; ++i) pages.push_back((i % 2 ? *two : *one) + uint64_t(i / 2));
  return pages;
}

class Cluster {
 public:
  static constexpr uint16_t kServer = 0, kProvider = 1, kFirstUser = 2;  // session ids

  explicit Cluster(const ClusterOptions& options = {}) : options_(options) {
    if (ClusterWatcher::make != nullptr) watcher_ = ClusterWatcher::make();
    static std::atomic<int> serial{0};
    const char* base = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    directory_ = std::string(base) + "/gcl-test-XXXXXX";
    if (mkdtemp(directory_.data()) == nullptr) die("mkdtemp");
    path_ = directory_ + "/pool" + std::to_string(serial++);
    coherence::Problem problem;
    const coherence::PoolFiles files{.path = path_.c_str(), .durable_path = nullptr, .compatibility = "test=1\n"};
    const auto made = bufmgr::BufferPool::create_pool(files,
                                                      {.pool_bytes = options.pool_bytes,
                                                       .memory_nodes = options.memory_nodes,
                                                       .nodes_max = options.nodes_max,
                                                       .ring_bytes = options.ring_bytes,
                                                       .status_words = options.status_words,
                                                       .repairs_deaths = options.repairs_deaths,
                                                       .records_deaths = options.records_deaths},
                                                      &problem);
    if (!made) die(problem.text);
    for (int n = 0; n < options.nodes; ++n) nodes_.push_back(std::make_unique<Member>(options.lazy_log));
    for (int n = 0; n < options.nodes; ++n) start(n);
  }
  ~Cluster() {
    for (int n = 0; n < int(nodes_.size()); ++n) {
      if (nodes_[n]->pool) stop(n);
    }
    if (watcher_ && !unclean_) watcher_->left(path_);
    if (system(("rm -rf '" + directory_ + "'").c_str()) != 0) fprintf(stderr, "cannot remove %s\n", directory_.c_str());
  }
  Cluster(const Cluster&) = delete;

  int nodes() const { return int(nodes_.size()); }
  bufmgr::BufferPool& pool(int node) { return *nodes_[node]->pool; }
  MemoryLog& log(int node) { return nodes_[node]->log; }
  const std::string& path() const { return path_; }

  // A session of its own for the calling thread; must end before the node stops.  Without `interrupts` it is never
  // interrupted.
  std::unique_ptr<bufmgr::Session> session(int node, bufmgr::Interrupts* interrupts = nullptr) {
    Member& member = *nodes_[node];
    std::lock_guard hold(member.mutex);
    uint16_t id = kFirstUser;
    while (member.used.size() > size_t(id) && member.used[id]) ++id;
    if (id >= options_.sessions_max) die("too many sessions on a node");
    if (member.used.size() <= id) member.used.resize(id + 1);
    member.used[id] = true;
    return member.pool->attach({id}, interrupts ? *interrupts : member.never, member.log);
  }
  // Optional: lets another session have this one's id.
  void end(int node, std::unique_ptr<bufmgr::Session> session) {
    const uint16_t id = session->id().value;
    session.reset();
    std::lock_guard hold(nodes_[node]->mutex);
    nodes_[node]->used[id] = false;
  }

  // Joins the pool (again).
  void start(int n) {
    Member& member = *nodes_[n];
    coherence::Problem problem;
    auto pool = bufmgr::BufferPool::create_node(
        {.files = {.path = path_.c_str(), .durable_path = nullptr, .compatibility = "test=1\n"},
         .node = {uint8_t(n)},
         .frames = options_.frames,
         .sessions_max = options_.sessions_max,
         .extra_bytes = options_.extra_bytes,
         .replacement = options_.replacement,
         .alone = options_.alone},
        &problem);
    if (!pool) die(problem.text);
    member.pool = pool.take();
    if (n == 0 && options_.transport) member.pool->coherence_node().set_transport(*options_.transport);
    member.used.clear();
    member.log.keep_records(options_.keep_records);
    member.log.set_watcher(watcher_.get());
    member.log.set_node(&member.pool->coherence_node());
    member.stop.store(false);
    member.server_session = member.pool->attach({kServer}, member.never, member.log);
    member.provider_session = member.pool->attach({kProvider}, member.never, member.log);
    if (!options_.workers) return;
    member.server = std::thread([&member] {
      while (!member.stop.load()) {
        if (!member.pool->serve(*member.server_session, 20)) break;
      }
    });
    member.provider = std::thread([&member] {
      while (!member.stop.load()) {
        if (!member.pool->run_provider_once(*member.provider_session)) member.pool->wait_for_provider_work(20);
      }
    });
  }
  // Leaves the pool in order.  REQUIRES: no session of the node is left.  Fails the test if something leaked.
  void stop(int n) {
    Member& member = *nodes_[n];
    stop_workers(n);
    member.provider_session.reset();
    if (member.pool->fenced()) unclean_ = true;
    if (!member.pool->fenced()) {
      EXPECT_EQ(member.pool->ring().reserved_now(), 0) << "ring space leaked on node " << n;
      // As log.reserve-before-latch says: what the engine reserves suffices.
      if (watcher_) {
        EXPECT_EQ(overdrafts(*member.pool), 0u) << "records of node " << n << " outgrew their reservations";
      }
      coherence::Problem problem;
      bool last = false;
      EXPECT_TRUE(member.pool->leave(*member.server_session, &last, &problem).ok()) << problem.text;
    }
    member.server_session.reset();
    member.log.set_node(nullptr);
    member.pool.reset();
  }
  enum class Redo : uint8_t { kPushed, kAsItIs };
  // Dies: leaves all in the pool as it is, and kPushed: all its redo there, as if a session had committed just before.
  // REQUIRES: no session of the node is left.
  void kill(int n, Redo redo = Redo::kPushed) {
    unclean_ = true;
    Member& member = *nodes_[n];
    stop_workers(n);
    if (redo == Redo::kPushed) (void)member.provider_session->push_redo();
    member.provider_session.reset();
    member.server_session.reset();
    member.log.set_node(nullptr);
    member.pool.reset();
  }
  void stop_workers(int n) {
    Member& member = *nodes_[n];
    member.stop.store(true);
    if (!member.server.joinable()) return;
    member.pool->coherence_node().ring();
    member.server.join();
    member.provider.join();
  }
  bufmgr::Session& server_session(int n) { return *nodes_[n]->server_session; }
  bufmgr::Session& provider_session(int n) { return *nodes_[n]->provider_session; }

 private:
  static uint64_t overdrafts(bufmgr::BufferPool& pool) {
    uint64_t sum = 0;
    for (uint16_t s = 0; s < pool.coherence_node().sessions_max(); ++s)
      sum += pool.counts({s}).get(bufmgr::Count::kOverdrafts);
    return sum;
  }
  struct Member {
    explicit Member(bool lazy) : log(lazy) {}
    MemoryLog log;
    Switch never;
    std::unique_ptr<bufmgr::BufferPool> pool;
    std::unique_ptr<bufmgr::Session> server_session, provider_session;
    std::thread server, provider;
    std::atomic<bool> stop{false};
    std::mutex mutex;
    std::vector<bool> used;
  };
  [[noreturn]] static void die(const char* what) {
    fprintf(stderr, "test cluster: %s\n", what);
    abort();
  }

  ClusterOptions options_;
  std::string directory_, path_;
  std::unique_ptr<ClusterWatcher> watcher_;
  std::atomic<bool> unclean_ = false;  // the pool was fenced, or a node killed; nodes stop in threads of their own
  std::vector<std::unique_ptr<Member>> nodes_;
};

}  // namespace gcl_test
