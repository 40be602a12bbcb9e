// Cycles in hand-made lists of waits.
#include "extension/engine/waitgraph/wait_graph.hpp"

#include <gtest/gtest.h>

namespace {

using engine::WaitGraph;
using engine::WaitKind;
using engine::WaitParty;
using engine::WaitRecord;

constexpr int64_t kSecond = 1'000'000;

// Process `pid` of primary `node`, whose transaction is `txn`.
struct Process {
  uint8_t node;
  uint32_t pid;
  uint64_t txn;
  WaitParty party() const { return {.pid = pid, .node = node}; }
};

WaitRecord wait_of(const Process& p, int64_t since) {
  WaitRecord r;
  r.incarnation = 1;
  r.wait = uint64_t(since);
  r.since_us = since;
  r.waiter_txn = p.txn;
  r.waiter = p.party();
  r.process = p.pid;
  r.node = p.node;
  snprintf(r.what, sizeof r.what, "ShareLock on something");
  return r;
}

WaitRecord remote(const Process& p, const Process& target, int64_t since, uint32_t timeout_ms = 1000) {
  WaitRecord r = wait_of(p, since);
  r.kind = WaitKind::kRemote;
  r.target_txn = target.txn;
  r.timeout_ms = timeout_ms;
  r.may_give_way = 1;
  return r;
}

WaitRecord local(const Process& p, const Process& target, int64_t since) {
  WaitRecord r = wait_of(p, since);
  r.target = target.party();
  r.target_process = target.pid;
  return r;
}

constexpr uint64_t kDdlTransaction = 77;

// The coordinator of DDL waits for its proxies.
WaitRecord replies(const Process& coordinator, int64_t since) {
  WaitRecord r = wait_of(coordinator, since);
  r.kind = WaitKind::kReplies;
  r.waiter.ddl_transaction = kDdlTransaction;
  r.timeout_ms = 1000;
  r.may_give_way = 1;
  return r;
}

WaitRecord proxy(const Process& worker, const Process& coordinator, const Process& target, int64_t since) {
  WaitRecord r = local(worker, target, since);
  r.waiter = coordinator.party();
  r.waiter.ddl_transaction = kDdlTransaction;
  return r;
}

WaitRecord behind_proxy(const Process& p, const Process& worker, const Process& coordinator, int64_t since) {
  WaitRecord r = local(p, worker, since);
  r.target = coordinator.party();
  r.target.ddl_transaction = kDdlTransaction;
  return r;
}

// The record that gives way, by its place in the list; -1: none does.  Fails if there are two.
int victim_of(const std::vector<WaitRecord>& all) {
  const WaitGraph graph(all);
  int victim = -1;
  for (uint8_t node = 0; node < 4; ++node)
    for (int i : graph.candidates({node}, 1000 * kSecond)) {
      if (graph.cycle_through(i).empty()) continue;
      EXPECT_EQ(victim, -1) << "two victims";
      victim = i;
    }
  return victim;
}

const Process a{1, 100, 11}, b{2, 200, 22}, c{3, 300, 33}, d{2, 201, 23}, worker{2, 250, 0};

TEST(WaitGraph, NobodyGivesWayWithoutACycle) {
  EXPECT_EQ(victim_of({}), -1);
  EXPECT_EQ(victim_of({remote(a, b, 1)}), -1);
  EXPECT_EQ(victim_of({remote(a, b, 1), remote(b, c, 2), remote(d, a, 3)}), -1);
}

TEST(WaitGraph, TheYoungestOfTwoGivesWay) {
  EXPECT_EQ(victim_of({remote(a, b, 1), remote(b, a, 2)}), 1);
  EXPECT_EQ(victim_of({remote(a, b, 2), remote(b, a, 1)}), 0);
}

TEST(WaitGraph, TheShortestDeadlockTimeoutGivesWayFirst) {
  EXPECT_EQ(victim_of({remote(a, b, 1, 500), remote(b, a, 2, 1000)}), 0);
}

TEST(WaitGraph, TheYoungestOfThreeGivesWay) {
  EXPECT_EQ(victim_of({remote(a, b, 1), remote(b, c, 3), remote(c, a, 2)}), 1);
}

TEST(WaitGraph, ALocalWaitMayBePartOfACycle) {
  // a -> b (remote), b -> d (local), d -> a (remote)
  EXPECT_EQ(victim_of({remote(a, b, 1), local(b, d, 9), remote(d, a, 2)}), 2);
}

TEST(WaitGraph, AProcessThatOnlyWaitsForACycleIsNoVictim) {
  EXPECT_EQ(victim_of({remote(a, b, 1), remote(b, a, 2), remote(c, a, 3)}), 1);
}

TEST(WaitGraph, TwoCyclesHaveAVictimEach) {
  const Process e{1, 101, 12}, f{3, 301, 34};
  const std::vector<WaitRecord> all{remote(a, b, 1), remote(b, a, 2), remote(e, f, 3), remote(f, e, 4)};
  const WaitGraph graph(all);
  EXPECT_TRUE(graph.cycle_through(0).empty());
  EXPECT_EQ(graph.cycle_through(1), (std::vector<int>{1, 0}));
  EXPECT_TRUE(graph.cycle_through(2).empty());
  EXPECT_EQ(graph.cycle_through(3), (std::vector<int>{3, 2}));
}

TEST(WaitGraph, AVictimThatIsRemovedBreaksItsCycles) {
  const std::vector<WaitRecord> all{remote(a, b, 1), remote(b, a, 3), remote(d, a, 2)};
  WaitGraph graph(all);
  EXPECT_FALSE(graph.cycle_through(1).empty());
  graph.remove(1);
  EXPECT_TRUE(graph.cycle_through(0).empty());
}

TEST(WaitGraph, ACycleWithinOneLockManagerIsLeftToItsServer) {
  EXPECT_EQ(victim_of({local(b, d, 1), local(d, b, 2)}), -1);
  // The coordinator of DDL and its proxy: the server of the proxy sees that it and b wait for each other.
  EXPECT_EQ(victim_of({replies(a, 1), proxy(worker, a, b, 2), behind_proxy(b, worker, a, 3)}), -1);
}

TEST(WaitGraph, ACoordinatorGivesWayThroughItsProxy) {
  // a waits for its worker on primary 2, that for b's lock, b for a row of a.
  EXPECT_EQ(victim_of({replies(a, 3), proxy(worker, a, b, 2), remote(b, a, 1)}), 0);
  EXPECT_EQ(victim_of({replies(a, 1), proxy(worker, a, b, 2), remote(b, a, 3)}), 2);
}

TEST(WaitGraph, AProxyOfACoordinatorThatNoLongerWaitsDoesNotCount) {
  EXPECT_EQ(victim_of({proxy(worker, a, b, 2), remote(b, a, 1)}), -1);
  WaitRecord later = replies(a, 3);
  later.waiter.ddl_transaction = kDdlTransaction + 1;
  EXPECT_EQ(victim_of({later, proxy(worker, a, b, 2), remote(b, a, 1)}), -1);
}

TEST(WaitGraph, AProxysLocksAreItsCoordinators) {
  // c waits on primary 2's lock manager for the worker that locked for a; a waits here for b, b for a row of c.
  WaitRecord mine = local(a, {1, 102, 13}, 5);
  mine.waiter.ddl_transaction = kDdlTransaction;
  const Process b1{1, 102, 13}, c2{2, 202, 24};
  EXPECT_EQ(victim_of({mine, remote(b1, c2, 6), behind_proxy(c2, worker, a, 7)}), 1);
  mine.waiter.ddl_transaction = kDdlTransaction + 1;  // a is in another transaction by now
  EXPECT_EQ(victim_of({mine, remote(b1, c2, 6), behind_proxy(c2, worker, a, 7)}), -1);
}

// A coordinator's wait in its own server; what it has locked elsewhere, its proxies hold.
WaitRecord at_home(WaitRecord r, uint64_t ddl_transaction) {
  r.waiter.ddl_transaction = ddl_transaction;
  r.timeout_ms = 1000;
  r.may_give_way = 1;
  return r;
}

TEST(WaitGraph, ACoordinatorThatWaitsAtHomeGivesWay) {
  // a waits for b's proxy on primary 1, b at home for d, which writes there, d for a's proxy on primary 2.
  const Process bs{1, 150, 0};
  WaitRecord of_a = at_home(local(a, bs, 5), kDdlTransaction);
  of_a.target = b.party();
  of_a.target.ddl_transaction = kDdlTransaction + 1;
  const WaitRecord of_d = behind_proxy(d, worker, a, 9);
  EXPECT_EQ(victim_of({of_a, at_home(local(b, d, 6), kDdlTransaction + 1), of_d}), 1) << "the youngest that may";
  EXPECT_EQ(victim_of({of_a, at_home(local(b, d, 4), kDdlTransaction + 1), of_d}), 0);
  EXPECT_EQ(victim_of({of_a, at_home(local(b, d, 6), kDdlTransaction + 2), of_d}), -1) << "b is in another transaction";
}

TEST(WaitGraph, CoordinatorsInARingOverThreePrimariesHaveOneVictim) {
  // Each waits at home for the proxy of the next.
  const Process ring[] = {a, b, c};
  std::vector<WaitRecord> all;
  for (uint32_t i = 0; i < 3; ++i) {
    const Process &mine = ring[i], &next = ring[(i + 1) % 3];
    WaitRecord r = at_home(local(mine, {mine.node, 900 + i, 0}, 10 + i), kDdlTransaction + i);
    r.target = next.party();
    r.target.ddl_transaction = kDdlTransaction + (i + 1) % 3;
    all.push_back(r);
  }
  EXPECT_EQ(victim_of(all), 2);
  all[0].timeout_ms = 10;
  EXPECT_EQ(victim_of(all), 0);
}

TEST(WaitGraph, AWaitGivesWayOnlyWhenItIsRipe) {
  const std::vector<WaitRecord> all{remote(a, b, kSecond), remote(b, a, 2 * kSecond)};
  const WaitGraph graph(all);
  EXPECT_TRUE(graph.candidates({2}, 3 * kSecond - 1).empty());
  EXPECT_EQ(graph.candidates({2}, 3 * kSecond), std::vector<int>{1});
  EXPECT_EQ(graph.candidates({1}, 3 * kSecond), std::vector<int>{0});
  EXPECT_EQ(graph.candidates({2}, -1), std::vector<int>{1})
      << "the clock was set back: how long it has lasted is not known";
}

TEST(WaitGraph, ACycleOfThousandsHasOneVictim) {
  std::vector<WaitRecord> all;
  constexpr uint32_t kMany = 3000;
  for (uint32_t i = 0; i < kMany; ++i)
    all.push_back(remote({uint8_t(i % 3), i, i + 1}, {0, 0, (i + 1) % kMany + 1}, 1000 - int64_t(i % 1000)));
  const WaitGraph graph(all);
  EXPECT_EQ(graph.cycle_through(0).size(), kMany);  // of three that are as young, on the first primary
  EXPECT_EQ(victim_of(all), 0);
}

TEST(WaitGraph, TheDetailNamesEveryWait) {
  const std::vector<WaitRecord> all{replies(a, 1), proxy(worker, a, b, 2), remote(b, a, 3)};
  const WaitGraph graph(all);
  EXPECT_EQ(
      graph.describe(graph.cycle_through(2)),
      "Process 200 of primary 2 waits for ShareLock on something; blocked by process 100 of primary 1.\n"
      "Process 250 of primary 2, for process 100 of primary 1, waits for ShareLock on something; blocked by process "
      "200 of primary 2.");
}

}  // namespace
