// LogGate: who waits until the ring is complete (log.ring-before-prepared).
#include "bufmgr/log/log_gate.hpp"

#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace bufmgr_test {

using bufmgr::LogGate;
using bufmgr::RedoRing;
using coherence::SessionId;

TEST(LogGate, WhoWaitsForTheRingIsWokenByEachThatWithdrawsUntilItIsComplete) {
  gcl_test::Cluster cluster({.nodes = 1, .workers = false});
  const auto at = cluster.pool(0).ring_of({0});
  RedoRing::Shared ring_shared{};
  RedoRing ring(&ring_shared, at.at, at.bytes);
  LogGate::Shared shared{};
  LogGate::Announcement announcements[3];
  LogGate::format(announcements, 3);
  LogGate gate(&cluster.pool(0).coherence_node(), &shared, announcements, &ring);
  for (uint16_t i = 0; i < 3; ++i) gate.enlist(SessionId{i});
  gate.announce({1});
  gate.announce({2});
  ring_shared.head.store(100);
  EXPECT_TRUE(gate.wait_complete(0, 0));  // nobody is at work before that

  const auto began = std::chrono::steady_clock::now();
  std::atomic<int> rounds{0};
  std::thread waits([&] {
    while (!gate.wait_complete(100, gcl_test::kPatienceMs)) ++rounds;
  });
  EXPECT_TRUE(gcl_test::eventually([&] { return shared.held != 0; }));
  gate.withdraw({1});
  EXPECT_TRUE(gcl_test::eventually([&] { return rounds == 1 && shared.held != 0; }));
  gate.announce({1});  // behind the place that is waited for
  gate.withdraw({2});
  waits.join();
  EXPECT_EQ(rounds, 2);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(gcl_test::kPatienceMs));
}

}  // namespace bufmgr_test
