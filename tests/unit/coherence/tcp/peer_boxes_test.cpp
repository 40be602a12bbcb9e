// PeerBoxes: what sessions leave while the worker takes.
#include "coherence/transport/tcp/message/peer_boxes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/longer.hpp"
#include "tests/support/tcp_nodes.hpp"

namespace coherence::tcp {
namespace {

constexpr NodeId kPeer{1};
constexpr uint16_t kEvent = 3;

class PeerBoxesTest : public testing::Test {
 protected:
  static constexpr uint32_t kNodes = 2;
  gcl_test::SharedPort port_{1};
  gcl_test::SharedBytes bytes_{PeerBoxes::bytes_for(kNodes)};
  PeerBoxes boxes_{bytes_.at(), kNodes, port_.port().worker_wakeup()};
};

// A worker may take what a wakeup wakes before the bit that says that there is one.  A frame that wakes nothing is
// malformed, and its receiver would end the link.
TEST_F(PeerBoxesTest, AWakeupThatIsTakenWakesSomething) {
  const int enough = 100'000 * gcl_test::longer();
  std::atomic<uint64_t> left{0};
  std::atomic<bool> stop{false}, over{false};
  std::thread session([&] {
    while (!stop) {
      left.fetch_add(1, std::memory_order_relaxed);
      boxes_.leave_wakeup(kPeer, kEvent, Wakeup::kNone);
    }
    over = true;
  });
  uint64_t saw = 0;
  int taken = 0, of_nothing = 0, of_others = 0;
  const auto take = [&](NodeId peer) {
    PeerBoxes::Wakeups wakeups;
    boxes_.take_wakeups(peer, &wakeups);
    of_others += (wakeups.events & ~(1u << kEvent)) != 0;
    if ((wakeups.events >> kEvent & 1) == 0) return;
    of_nothing += wakeups.otherwise[kEvent] == 0;
    saw = left.load(std::memory_order_relaxed);
    stop = ++taken >= enough;
  };
  for (bool ends = false; !ends;) {
    ends = over;  // first: all that was left before is taken now
    boxes_.take_peers(take);
  }
  session.join();
  EXPECT_EQ(of_nothing, 0);
  EXPECT_EQ(of_others, 0);
  EXPECT_EQ(saw, left.load()) << "the last one is forgotten";
}

TEST_F(PeerBoxesTest, AFencedNodeLeavesNoGrant) {
  std::atomic<uint32_t> fence{0};
  const auto taken = [&] {
    uint32_t count = 0;
    boxes_.take_grants(kPeer, [&](const CompleteGrant&) { count++; });
    return count;
  };
  for (uint32_t i = 0; i < PeerBoxes::kGrantsMax; i++) boxes_.leave_grant(kPeer, {i, 1}, fence);
  fence = 1;
  boxes_.leave_grant(kPeer, {0, 1}, fence);
  EXPECT_EQ(taken(), PeerBoxes::kGrantsMax);
  boxes_.leave_grant(kPeer, {0, 1}, fence);
  EXPECT_EQ(taken(), 0u);
  fence = 0;
  boxes_.leave_grant(kPeer, {0, 1}, fence);
  EXPECT_EQ(taken(), 1u);
}

}  // namespace
}  // namespace coherence::tcp
