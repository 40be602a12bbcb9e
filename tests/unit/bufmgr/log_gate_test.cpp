// LogGate: up to where the ring is complete (log.work-is-marked), and the sessions that wait for that
// (log.ring-before-prepared).
#include "bufmgr/log/log_gate.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace bufmgr_test {

using bufmgr::LogGate;
using bufmgr::RedoRing;
using coherence::SessionId;

// A gate of its own, whose records are written nowhere.
struct Gate {
  explicit Gate(bool lazy_log = false)
      : cluster({.nodes = 1, .workers = false}),
        log(lazy_log),
        announcements(coherence::kSessionsMax),
        here(cluster.pool(0).ring().data_bytes()),
        ring(&ring_shared, here.data(), cluster.pool(0).ring_of({0}).at, cluster.pool(0).ring_of({0}).bytes),
        gate(&cluster.pool(0).coherence_node(), &shared, announcements.data(), &ring, {&called, &sleeps}) {
    gate.set_sink(&log);
  }
  // As a push whose batch has arrived.
  LogGate::Push push(SessionId id) {
    const LogGate::Push push = gate.begin_push(id, 0);
    gate.arrived(push);
    gate.end_push(id);
    return push;
  }
  gcl_test::Cluster cluster;
  gcl_test::MemoryLog log;
  std::vector<LogGate::Announcement> announcements;
  RedoRing::Shared ring_shared{};
  LogGate::Shared shared{};
  std::atomic<uint32_t> called{0}, sleeps{0};
  std::vector<std::byte> here;
  RedoRing ring;
  LogGate gate;
};

TEST(LogGate, EverySessionAtWorkHoldsIt) {
  Gate g;
  g.gate.enlist({7});
  for (const uint16_t id : {0, 1, 63, 64, 130, coherence::kSessionsMax - 1}) {
    g.gate.enlist({id});
    const uint64_t before = g.ring_shared.head;
    const uint64_t floor = g.shared.last_lsn;
    g.gate.announce({id});
    g.ring_shared.head += 100;
    const std::byte record[50] = {};
    g.gate.appended(g.log.append(record));
    EXPECT_EQ(g.gate.ring_complete(), before) << id;
    EXPECT_EQ(g.push({7}).upto, before) << id;
    EXPECT_EQ(g.gate.flushed().value, floor) << id;
    EXPECT_NE(g.shared.held, 0u) << "it will be rung for";
    g.gate.withdraw({id});
    EXPECT_EQ(g.gate.ring_complete(), before + 100) << id;
    EXPECT_EQ(g.gate.flushed().value, floor) << "it is not in the pool yet";
    EXPECT_EQ(g.push({7}).upto, before + 100) << id;
    EXPECT_EQ(g.gate.flushed().value, floor + 50) << id;
  }
}

// Sessions in two words, and readers that check what the gate promises: all below ring_complete() is there, and so is
// all up to the place of a record that is in the log up to flushed(), and to what a push says.  The records are plain
// bytes: ThreadSanitizer sees whether what is promised has happened before.
TEST(LogGate, WhatItPromisesIsThere) {
  constexpr uint32_t kRecords = 30000, kWriters = 4, kBytes = 8;
  Gate g;
  std::vector<char> written(kRecords);
  std::vector<std::atomic<uint64_t>> place_at(kRecords + 1);  // by log position, a byte for each record
  std::atomic<uint32_t> writing{kWriters};
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < kWriters; ++w)
    threads.emplace_back([&, id = SessionId{uint16_t(w % 2 == 0 ? w : 64 + w)}] {
      g.gate.enlist(id);
      for (;;) {
        g.gate.announce(id);
        const uint64_t place = g.ring_shared.head.fetch_add(kBytes) / kBytes;
        if (place < kRecords) {
          if (place % 64 == 0) std::this_thread::yield();
          written[place] = 1;
          const std::byte record{};
          const coherence::Lsn lsn = g.log.append({&record, 1});
          place_at[lsn.value].store(place);
          g.gate.appended(lsn);
        }
        g.gate.withdraw(id);
        if (place >= kRecords) break;
      }
      --writing;
    });
  const auto check = [&](SessionId id) {
    uint64_t whole = 0, looked = 0, pushed = 0;  // places that were found written; log positions that were looked at
    const auto reaches = [&](uint64_t place) {
      for (; whole < std::min<uint64_t>(place, kRecords); ++whole) ASSERT_EQ(written[whole], 1) << whole;
    };
    while (writing != 0) {
      reaches(g.gate.ring_complete() / kBytes);
      const LogGate::Push push = g.push(id);
      reaches(push.upto / kBytes);
      for (; pushed < push.lsn; ++pushed) ASSERT_LT(place_at[pushed + 1].load() * kBytes, push.upto) << pushed;
      for (const uint64_t upto = g.gate.flushed().value; looked < upto; ++looked)
        reaches(place_at[looked + 1].load() + 1);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(g.gate.ring_complete(), g.ring_shared.head.load());
    g.push(id);
    EXPECT_EQ(g.gate.flushed().value, kRecords);
  };
  for (const uint16_t id : {7, 8}) g.gate.enlist({id});
  threads.emplace_back(check, SessionId{7});
  check({8});
  for (std::thread& thread : threads) thread.join();
}

TEST(LogGate, AWaiterForTheRingIsWokenByEachThatWithdrawsUntilItIsComplete) {
  Gate g;
  LogGate& gate = g.gate;
  for (uint16_t i = 0; i < 3; ++i) gate.enlist(SessionId{i});
  gate.announce({1});
  gate.announce({2});
  g.ring_shared.head.store(100);
  EXPECT_TRUE(gate.wait_complete(0, 0));  // nobody is at work before that

  const auto began = std::chrono::steady_clock::now();
  std::atomic<int> rounds{0};
  std::thread waits([&] {
    while (!gate.wait_complete(100, gcl_test::kPatienceMs)) ++rounds;
  });
  EXPECT_TRUE(gcl_test::eventually([&] { return g.shared.held != 0; }));
  gate.withdraw({1});
  EXPECT_TRUE(gcl_test::eventually([&] { return rounds == 1 && g.shared.held != 0; }));
  gate.announce({1});  // behind the place that is waited for
  gate.withdraw({2});
  waits.join();
  EXPECT_EQ(rounds, 2);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(gcl_test::kPatienceMs));
}

// log.push-keeps-bytes
TEST(LogGate, WhatIsOnItsWayIsKeptThoughAnotherSessionPushes) {
  Gate g;
  for (const uint16_t id : {1, 2}) g.gate.enlist({id});
  g.ring_shared.pushed = 40;
  g.ring_shared.head = 100;
  const LogGate::Push slow = g.gate.begin_push({1}, 0);
  EXPECT_EQ(slow.from, 40u);
  EXPECT_EQ(slow.upto, 100u);
  g.ring_shared.head = 200;
  EXPECT_EQ(g.push({2}).upto, 200u);
  EXPECT_EQ(g.ring.pushed(), 200u);
  EXPECT_EQ(g.gate.kept_from(), 40u);
  g.gate.arrived(slow);
  g.gate.end_push({1});
  EXPECT_EQ(g.ring.pushed(), 200u);
  EXPECT_EQ(g.gate.kept_from(), 200u);
}

TEST(LogGate, ARecordThatWasPushedBeforeTheLogHadItsPositionIsPushedOnceMoreForThat) {
  Gate g;
  g.gate.enlist({1});
  g.ring_shared.pushed = 40;
  g.ring_shared.head = 100;
  EXPECT_EQ(g.push({1}).lsn, 0u);
  const std::byte record[50] = {};
  g.gate.appended(g.log.append(record));
  EXPECT_EQ(g.ring.pushed(), g.ring.head());
  EXPECT_EQ(g.gate.flushed().value, 0u);
  auto session = g.cluster.session(0);
  g.gate.push({1}, session->unordered_memory());
  EXPECT_EQ(g.gate.flushed().value, 50u);
}

TEST(LogGate, APageThatIsToLeaveHasItsRedoPushed) {
  Gate g;
  g.gate.enlist({1});
  g.gate.announce({1});
  g.ring_shared.head += 100;
  const std::byte record[50] = {};
  g.gate.appended(g.log.append(record));
  g.gate.withdraw({1});
  g.sleeps = 1;
  g.gate.request_flush({50});
  EXPECT_EQ(g.called, 1u);
  EXPECT_TRUE(g.gate.take_push_request());
  g.push({1});
  EXPECT_FALSE(g.gate.push_wanted());
  g.gate.request_flush({50});
  EXPECT_EQ(g.called, 1u) << "it is there";
}

}  // namespace bufmgr_test
