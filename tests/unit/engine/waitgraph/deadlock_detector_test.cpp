// The wait registries of several nodes in one pool, and the detectors that read them.
#include "extension/engine/waitgraph/deadlock_detector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <span>
#include <thread>

#include "tests/support/cluster_fixture.hpp"

namespace {

using engine::Deadlock;
using engine::DeadlockDetector;
using engine::WaitKind;
using engine::WaitRecord;
using engine::WaitRegistry;

struct Node {
  Node(gcl_test::Cluster& cluster, int n, uint64_t incarnation = 1)
      : session(cluster.session(n)),
        registry(session->memory(), cluster.pool(n).region(bufmgr::Region::kWaits), cluster.pool(n).nodes_max(),
                 {uint8_t(n)}, incarnation),
        detector(registry, {uint8_t(n)}) {}
  // As its worker: tells its waits if a node asked.
  void answer() { registry.publish(registry.asked()->ticket, waits, 0); }
  std::unique_ptr<bufmgr::Session> session;
  WaitRegistry registry;
  DeadlockDetector detector;
  std::vector<WaitRecord> waits;
};

WaitRecord remote(int node, uint64_t txn, uint64_t target, int64_t since) {
  WaitRecord r;
  r.wait = uint64_t(since);
  r.since_us = since;
  r.waiter_txn = txn;
  r.target_txn = target;
  r.waiter = {.pid = uint32_t(txn), .node = uint8_t(node)};
  r.process = uint32_t(txn);
  r.kind = WaitKind::kRemote;
  r.may_give_way = 1;
  return r;
}

constexpr coherence::NodeSet kBoth{3};
constexpr int64_t kNow = 5'000'000;

TEST(WaitRegistry, AnswersAreOfTheTicketOrLater) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node one(cluster, 0), two(cluster, 1);
  std::vector<WaitRecord> seen;
  two.waits = {remote(1, 7, 8, 5)};
  two.answer();
  const uint64_t ticket = *one.registry.ask();
  EXPECT_FALSE(one.registry.read({1}, ticket, &seen));
  EXPECT_TRUE(seen.empty());
  two.answer();
  ASSERT_TRUE(one.registry.read({1}, ticket, &seen));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].waiter_txn, 7u);
  EXPECT_EQ(seen[0].node, 1);
  EXPECT_EQ(seen[0].incarnation, 1u);
  two.registry.clear();
  EXPECT_FALSE(one.registry.read({1}, ticket, &seen));
}

TEST(WaitRegistry, ANodeThatAnswersKnowsWhichHaveAsked) {
  gcl_test::Cluster cluster({.nodes = 3});
  Node one(cluster, 0), two(cluster, 1), three(cluster, 2);
  EXPECT_TRUE(three.registry.asked()->by.empty());
  const uint64_t first = *one.registry.ask(), second = *two.registry.ask();
  auto asked = *three.registry.asked();
  EXPECT_EQ(asked.ticket, second);
  EXPECT_GT(second, first);
  EXPECT_EQ(asked.by, kBoth);
  EXPECT_TRUE(three.registry.asked()->by.empty());
  (void)*two.registry.ask();
  EXPECT_EQ(three.registry.asked()->by, coherence::NodeSet::of({1}));
}

// Two that ask again and again, and sleep until they are woken; one that answers, and sleeps until it is woken.
TEST(WaitRegistry, ANodeThatAsksIsWokenByTheAnswer) {
  gcl_test::Cluster cluster({.nodes = 3});
  std::atomic<uint32_t> event[3]{};
  const auto wake = [&](int n) {
    event[n].fetch_add(1);
    event[n].notify_all();
  };
  std::atomic<int> left{2};
  std::vector<std::thread> askers;
  for (int n = 0; n < 2; ++n)
    askers.emplace_back([&, n] {
      Node node(cluster, n);
      for (int round = 0; round < 2000; ++round) {
        const uint64_t ticket = *node.registry.ask();
        wake(2);
        for (std::vector<WaitRecord> seen;;) {
          const uint32_t count = event[n].load();
          if (node.registry.read({2}, ticket, &seen)) break;
          event[n].wait(count);
        }
      }
      --left;
      wake(2);
    });
  Node answerer(cluster, 2);
  while (left.load() > 0) {
    const uint32_t count = event[2].load();
    const auto asked = *answerer.registry.asked();
    answerer.registry.publish(asked.ticket, answerer.waits, 0);
    for (int n = 0; n < 2; ++n)
      if (asked.by.has({uint8_t(n)})) wake(n);
    if (left.load() > 0) event[2].wait(count);
  }
  for (auto& asker : askers) asker.join();
}

TEST(WaitRegistry, AListIsReadWhole) {
  gcl_test::Cluster cluster({.nodes = 2, .nodes_max = 2});
  Node writer(cluster, 0), reader(cluster, 1);
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    for (uint64_t n = 1; !stop.load(); ++n) {
      std::vector<WaitRecord> list(n % writer.registry.room(), remote(0, n, n, int64_t(n)));
      writer.registry.publish(n, list, uint32_t(n));
      std::this_thread::yield();
    }
  });
  // The writer writes all the time, as no node does: on one processor a reader's time slice often finds it in the
  // middle.
  int whole = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (whole < 500 && std::chrono::steady_clock::now() < until) {
    std::vector<WaitRecord> seen;
    uint32_t left_out = 0;
    if (!reader.registry.read({0}, 1, &seen, &left_out)) {
      std::this_thread::yield();
      continue;
    }
    ++whole;
    EXPECT_EQ(seen.size(), left_out % writer.registry.room());
    for (const WaitRecord& r : seen) EXPECT_EQ(r.wait, left_out);
  }
  stop.store(true);
  thread.join();
  EXPECT_EQ(whole, 500);
}

// Does something between the reader's first batch and its second.
class Meddler final : public coherence::Memory {
 public:
  Meddler(coherence::Memory& memory, std::function<void()> meddle) : memory_(memory), meddle_(std::move(meddle)) {}
  void post(coherence::Batch* const* batches, int count) override {
    if (++posts_ == 2) meddle_();
    memory_.post(batches, count);
  }
  void poll() override { memory_.poll(); }

 private:
  coherence::Memory& memory_;
  std::function<void()> meddle_;
  int posts_ = 0;
};

TEST(WaitRegistry, AListThatChangesWhileItIsReadIsReadAgain) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node writer(cluster, 0), reader(cluster, 1);
  writer.waits = {remote(0, 7, 8, 5), remote(0, 9, 8, 6)};
  writer.answer();
  Meddler memory(reader.session->memory(), [&] {
    writer.waits.pop_back();
    writer.answer();
  });
  WaitRegistry registry(memory, cluster.pool(1).region(bufmgr::Region::kWaits), cluster.pool(1).nodes_max(), {1}, 1);
  std::vector<WaitRecord> seen;
  EXPECT_TRUE(registry.read({0}, 0, &seen));
  EXPECT_EQ(seen.size(), 1u);
}

// Of each batch that ends with an FAA, as a publication does, only the first operations take place.
class DiesInPublication final : public coherence::Memory {
 public:
  DiesInPublication(coherence::Memory& memory, int operations) : memory_(memory), operations_(operations) {}
  void post(coherence::Batch* const* batches, int count) override {
    for (coherence::Batch* batch : std::span(batches, size_t(count))) {
      const coherence::Op& last = batch->op(batch->size() - 1);
      if (last.verb != coherence::Verb::kFaa) {
        memory_.post(*batch);
        continue;
      }
      coherence::Batch part(batch->to());
      for (int i = 0; i < std::min(operations_, batch->size()); ++i) {
        const coherence::Op& op = batch->op(i);
        if (op.verb == coherence::Verb::kWrite) part.write(op.at, op.local, op.bytes);
        if (op.verb == coherence::Verb::kFaa) part.faa(op.at, op.operand);
      }
      if (part.size() > 0) (void)memory_.run(part);
      batch->state.store(coherence::BatchState::kDone);
    }
  }
  void poll() override { memory_.poll(); }

 private:
  coherence::Memory& memory_;
  const int operations_;
};

TEST(WaitRegistry, ANodeThatDiesWhileItWritesLeavesTheListBefore) {
  for (int operations = 0; operations < 3; ++operations) {
    SCOPED_TRACE(operations);
    gcl_test::Cluster cluster({.nodes = 2});
    Node one(cluster, 0);
    auto two = std::make_unique<Node>(cluster, 1);
    const uint64_t ticket = *one.registry.ask();
    two->waits = {remote(1, 7, 8, 5)};
    two->answer();
    DiesInPublication dies(two->session->memory(), operations);
    const std::vector<WaitRecord> other = {remote(1, 9, 8, 6), remote(1, 9, 7, 6)};
    WaitRegistry(dies, cluster.pool(1).region(bufmgr::Region::kWaits), cluster.pool(1).nodes_max(), {1}, 1)
        .publish(*one.registry.ask(), other, 3);
    std::vector<WaitRecord> seen;
    uint32_t left_out = 0;
    ASSERT_TRUE(one.registry.read({1}, ticket, &seen, &left_out));
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].waiter_txn, 7u);
    EXPECT_EQ(left_out, 0u);

    two = std::make_unique<Node>(cluster, 1, 2);
    two->registry.clear();
    seen.clear();
    EXPECT_FALSE(one.registry.read({1}, ticket, &seen));
    two->waits = {remote(1, 7, 8, 5)};
    two->answer();
    ASSERT_TRUE(one.registry.read({1}, ticket, &seen));
    EXPECT_EQ(seen[0].incarnation, 2u);
  }
}

struct Pair {
  Pair() : cluster({.nodes = 2}), one(cluster, 0), two(cluster, 1) {}
  // Both answer, both step; what they decided.
  std::vector<Deadlock> round(int64_t now) {
    one.answer();
    two.answer();
    std::vector<Deadlock> all;
    for (Node* node : {&one, &two}) {
      bool asked = false;
      for (Deadlock& deadlock : node->detector.step(kBoth, now, &asked)) all.push_back(deadlock);
    }
    return all;
  }
  void start(int64_t now) {
    bool asked = false;
    one.detector.start(now, &asked);
    two.detector.start(now, &asked);
    EXPECT_TRUE(asked);
  }
  gcl_test::Cluster cluster;
  Node one, two;
};

TEST(DeadlockDetector, ACycleOfTwoNodesHasOneVictim) {
  Pair pair;
  pair.one.waits = {remote(0, 7, 8, 100)};
  pair.two.waits = {remote(1, 8, 7, 200)};
  pair.start(kNow);
  EXPECT_TRUE(pair.round(kNow).empty());  // the first round proves nothing yet
  const auto deadlocks = pair.round(kNow);
  ASSERT_EQ(deadlocks.size(), 1u);
  EXPECT_EQ(deadlocks[0].victim.waiter_txn, 8u);
  EXPECT_FALSE(pair.one.detector.busy() || pair.two.detector.busy());
}

TEST(DeadlockDetector, AWaitThatEndedBetweenTheLooksIsForgotten) {
  Pair pair;
  pair.one.waits = {remote(0, 7, 8, 100)};
  pair.two.waits = {remote(1, 8, 7, 200)};
  pair.start(kNow);
  EXPECT_TRUE(pair.round(kNow).empty());
  pair.one.waits = {remote(0, 7, 8, 101)};  // the same parties, but another sleep
  EXPECT_TRUE(pair.round(kNow).empty());
}

TEST(DeadlockDetector, ARecordOfAFormerIncarnationProvesNothing) {
  Pair pair;
  pair.one.waits = {remote(0, 7, 8, 100)};
  pair.two.waits = {remote(1, 8, 7, 200)};
  pair.start(kNow);
  EXPECT_TRUE(pair.round(kNow).empty());
  Node again(pair.cluster, 0, 2);
  pair.two.answer();
  again.registry.publish(again.registry.asked()->ticket, pair.one.waits, 0);
  bool asked = false;
  EXPECT_TRUE(pair.two.detector.step(kBoth, kNow, &asked).empty());
  EXPECT_FALSE(pair.two.detector.busy());
}

TEST(DeadlockDetector, ANodeThatDoesNotAnswerIsLeftOut) {
  Pair pair;
  pair.one.waits = {remote(0, 7, 8, 100), remote(0, 9, 9, 50)};
  bool asked = false;
  pair.one.detector.start(kNow, &asked);
  pair.one.answer();
  EXPECT_TRUE(pair.one.detector.step(kBoth, kNow, &asked).empty());
  EXPECT_TRUE(pair.one.detector.busy());
  EXPECT_TRUE(pair.one.detector.step(kBoth, kNow + 1'000'000, &asked).empty());  // finds 9 -> 9, asks again
  pair.one.answer();
  EXPECT_TRUE(pair.one.detector.step(kBoth, kNow + 1'100'000, &asked).empty());
  EXPECT_EQ(pair.one.detector.step(kBoth, kNow + 2'000'000, &asked).size(), 1u);
}

}  // namespace
