// A cluster with transactions, in one process: every node has its shared transaction state and a member thread that
// ticks; a Worker is what a backend is, for one test thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <string>

#include "extension/engine/heap/heap.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace engine_test {

using namespace engine;  // NOLINT: a test's own namespace
using gcl_test::kPatienceMs;

inline constexpr int kNodes = 3;  // of the stress tests

class Engine;

// Waits by waker, as a wait worker would, and gives up at some time: a test in which two wait for each other says when.
class TestWaiter final : public Waiter {
 public:
  TestWaiter(Engine& engine, int node) : engine_(engine), node_(node) {}
  void serve(TxnSystem* txns) { txns_ = txns; }
  coherence::Status wait_for(TxnId id, WaitFor why) override {
    if (why != WaitFor::kHolds) return wait([=, this] { return txns_->watch(id); }, waits);
    return wait([=, this] { return txns_->want_holds(id); }, waits);
  }
  coherence::Result<bool> enter_row_queue(const RowQueue& queue) override {
    EXPECT_FALSE(queue_) << "one at a time";
    queue_ = queue;
    ++queued;
    return false;
  }
  void leave_row_queue(const RowQueue& queue) noexcept override {
    EXPECT_EQ(queue_, queue);
    queue_.reset();
  }
  coherence::Status wait_for_speculation(const Speculation& speculation) override {
    return wait([=, this] { return txns_->watch(speculation); }, decision_waits);
  }
  coherence::Status pause(uint32_t ms) override {
    ++pauses;
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return {};
  }
  std::atomic<int> waits{0}, decision_waits{0}, queued{0}, pauses{0};  // so far
  // Called by another thread: until it has begun to wait that often.
  void expect_waits(int count) {
    EXPECT_TRUE(gcl_test::eventually([&] { return waits + decision_waits >= count; })) << waits + decision_waits;
  }
  int timeout_ms = kPatienceMs;
  std::function<void()> on_wait;  // what others do as soon as it has begun to wait, in its thread

 private:
  template <class Watch>
  coherence::Status wait(Watch watch, std::atomic<int>& count);
  Engine& engine_;
  int node_;
  TxnSystem* txns_ = nullptr;
  std::optional<RowQueue> queue_;
};

class TestWaker final : public NodeWaker {
 public:
  explicit TestWaker(Engine& engine) : engine_(engine) {}
  void wake(coherence::NodeSet nodes) noexcept override;
  std::atomic<int> rings{0};

 private:
  Engine& engine_;
};

struct EngineOptions {
  gcl_test::ClusterOptions cluster{};
  uint32_t slots_max = ~uint32_t{0};
  bool tickers = true;
};

class Engine {
 public:
  explicit Engine(const EngineOptions& options = {}) : options_(options), cluster_(options.cluster), waker_(*this) {
    for (int n = 0; n < options.cluster.nodes; ++n) nodes_.push_back(std::make_unique<Node>());
    for (int n = 0; n < options.cluster.nodes; ++n) start(n);
  }
  ~Engine() {
    for (int n = 0; n < int(nodes_.size()); ++n) stop_ticker(n);
  }
  gcl_test::Cluster& cluster() { return cluster_; }
  TxnShared& shared(int node) { return *nodes_[node]->shared; }
  TestWaker& waker() { return waker_; }
  int nodes() const { return int(nodes_.size()); }

  // How often the node's member worker was woken.
  uint64_t wakeups(int n) {
    std::lock_guard hold(nodes_[n]->mutex);
    return nodes_[n]->rings;
  }
  // Sleeps until there are more than `seen`; false: it took too long.
  bool sleep_until_woken(int n, uint64_t seen) {
    std::unique_lock hold(nodes_[n]->mutex);
    return nodes_[n]->rung.wait_for(hold, std::chrono::milliseconds(kPatienceMs),
                                    [&] { return nodes_[n]->rings != seen; });
  }
  void wake(int n) { waker_.wake(coherence::NodeSet::of({uint8_t(n)})); }

  // From now on only sessions that need it tick for the node.
  void pause_ticker(int n) { stop_ticker(n); }

  // A node that left joins again, with fresh local state.
  void restart(int n);
  // The node dies.  REQUIRES: its workers have vanished.
  void kill(int n) {
    stop_ticker(n);
    cluster_.kill(n);
  }
  // As kill(), and then it joins again; but its pages are as they were.
  void crash_and_join(int n, HostCommits* host = nullptr) {
    stop_ticker(n);
    start(n, host);
  }

 private:
  friend class TestWaiter;
  friend class TestWaker;
  friend class Worker;
  struct Node {
    std::unique_ptr<std::byte[]> memory;
    TxnShared* shared = nullptr;
    std::thread ticker;
    std::atomic<bool> stop{false};
    std::atomic<bool> ticks{false};
    std::mutex mutex;
    std::condition_variable rung;
    uint64_t rings = 0;
  };
  void start(int n, HostCommits* host = nullptr);
  void stop_ticker(int n) {
    nodes_[n]->stop.store(true);
    if (nodes_[n]->ticker.joinable()) nodes_[n]->ticker.join();
  }

  EngineOptions options_;
  gcl_test::Cluster cluster_;
  TestWaker waker_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

// A session with its transaction system.
class Worker {
 public:
  Worker(Engine& engine, int node, bufmgr::Interrupts* interrupts = nullptr)
      : engine_(engine),
        node_(node),
        session_(engine.cluster().session(node, interrupts)),
        waiter_(engine, node),
        txns_(engine.cluster().pool(node), *session_, engine.shared(node), waiter_, engine.waker()) {
    waiter_.serve(&txns_);
  }
  ~Worker() {
    if (vanished_) return;
    txns_.abort();
    txns_.set_oldest(std::nullopt);
    EXPECT_EQ(session_->guards_held(), 0);
    engine_.cluster().end(node_, std::move(session_));
  }
  // As a process that is killed: nothing ends in order.  Called before its node dies.
  void vanish() {
    vanished_ = true;
    engine_.cluster().end(node_, std::move(session_));
  }
  TxnSystem& txns() { return txns_; }
  TxnSystem* operator->() { return &txns_; }
  TestWaiter& waiter() { return waiter_; }
  Session& session() { return *session_; }

  Snapshot snapshot(uint32_t command = 0, coherence::Intent intent = coherence::Intent::kRead) {
    auto ts = txns_.take_snapshot(intent);
    EXPECT_TRUE(ts.ok());
    return {.kind = SnapshotKind::kMvcc, .ts = *ts, .command = command};
  }
  Cts commit() {
    EXPECT_TRUE(txns_.prepare().ok());
    auto cts = txns_.commit();
    EXPECT_TRUE(cts.ok());
    txns_.set_oldest(std::nullopt);
    return cts ? *cts : Cts{};
  }
  void abort() {
    txns_.abort();
    txns_.set_oldest(std::nullopt);
  }
  // Until the horizon, as this node knows it, has passed everything that has ended by now.  REQUIRES: no snapshot is
  // held anywhere; the other nodes tick.
  void pass_horizon() {
    const Cts moment = *txns_.pass_moment();
    EXPECT_TRUE(gcl_test::eventually([&] {
      auto horizon = txns_.refresh_horizon(moment);
      return horizon.ok() && *horizon > moment;
    }));
  }

 private:
  Engine& engine_;
  int node_;
  std::unique_ptr<Session> session_;
  TestWaiter waiter_;
  TxnSystem txns_;
  bool vanished_ = false;
};

inline void Engine::start(int n, HostCommits* host) {
  Node& node = *nodes_[n];
  const uint32_t sessions = options_.cluster.sessions_max;
  node.memory = std::make_unique<std::byte[]>(TxnShared::bytes_for(sessions) + 64);
  auto at = (reinterpret_cast<uintptr_t>(node.memory.get()) + 63) & ~uintptr_t{63};
  node.shared = TxnShared::create(reinterpret_cast<void*>(at), sessions, options_.slots_max);
  {
    Worker first(*this, n);
    EXPECT_TRUE(first->join(host).ok());
  }
  node.stop.store(false);
  if (!options_.tickers) return;
  node.ticks.store(false);
  node.ticker = std::thread([this, n] {
    Worker member(*this, n);
    nodes_[n]->ticks.store(true);
    nodes_[n]->ticks.notify_one();
    while (!nodes_[n]->stop.load()) {
      EXPECT_TRUE(member->end_dead_nodes().ok());
      EXPECT_TRUE(member->tick().ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  node.ticks.wait(false);  // which sessions are free does not depend on when a thread begins
}

inline void Engine::restart(int n) {
  stop_ticker(n);
  {
    Worker last(*this, n);
    last->leave();
  }
  start(n);
}

template <class Watch>
coherence::Status TestWaiter::wait(Watch watch, std::atomic<int>& count) {
  ++count;
  if (on_wait) on_wait();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  auto& node = *engine_.nodes_[node_];
  while (std::chrono::steady_clock::now() < until) {
    uint64_t seen;
    {
      std::lock_guard hold(node.mutex);
      seen = node.rings;
    }
    auto running = watch();
    if (!running) return running.error();
    if (!*running) return {};
    std::unique_lock hold(node.mutex);
    node.rung.wait_until(hold, until, [&] { return node.rings != seen; });
  }
  return coherence::Errc::kInterrupted;
}

inline void TestWaker::wake(coherence::NodeSet nodes) noexcept {
  rings.fetch_add(1);
  for (int n = 0; n < engine_.nodes(); ++n) {
    if (!nodes.has({uint8_t(n)})) continue;
    std::lock_guard hold(engine_.nodes_[n]->mutex);
    ++engine_.nodes_[n]->rings;
    engine_.nodes_[n]->rung.notify_all();
  }
}

// Rows of the tests: a few bytes of text, or a number.
struct TestRow {
  explicit TestRow(const std::string& text) : body(text) { body.insert(0, 1, '\0'); }  // the byte before aligned data
  RowImage image() const { return {reinterpret_cast<const std::byte*>(body.data()), uint32_t(body.size()), 1, false}; }
  std::string body;
};

struct RowBuffer {
  alignas(8) std::byte bytes[kRowBytesMax];
  std::string text(uint32_t row_bytes) const {
    return {reinterpret_cast<const char*>(bytes) + kRowHeaderBytes + 1, row_bytes - kRowHeaderBytes - 1};
  }
};

inline std::string text_of(PageRows& rows, uint16_t line) {
  return {reinterpret_cast<const char*>(rows.row(line)) + kRowHeaderBytes + 1, rows.bytes(line) - kRowHeaderBytes - 1};
}

// Of a relation without indexes.
struct NoIndexes final : IndexCleaner {
  coherence::Status remove(std::span<const Tid>) override { return {}; }
};

struct FoundRow {
  Tid tid;
  std::string text;
};

// All rows a snapshot sees, in scan order.
inline std::vector<FoundRow> scan_rows(Heap& heap, const Snapshot& snapshot) {
  std::vector<FoundRow> found;
  HeapScan scan(heap, snapshot);
  EXPECT_TRUE(scan.start().ok());
  auto rows = std::make_unique<PageRows>();
  for (uint32_t i = 0; i < scan.pages(); ++i) {
    EXPECT_TRUE(scan.read(i, *rows).ok());
    for (int r = 0; r < rows->count; ++r)
      found.push_back({{rows->block, rows->offset[r]}, text_of(*rows, rows->offset[r])});
  }
  return found;
}

inline std::vector<std::string> scan_all(Heap& heap, const Snapshot& snapshot) {
  std::vector<std::string> found;
  for (FoundRow& row : scan_rows(heap, snapshot)) found.push_back(std::move(row.text));
  return found;
}

}  // namespace engine_test
