// Wakeups between nodes: which sleepers are woken, and which instead.
#include <thread>

#include "cluster.hpp"
#include "coherence/base/os.hpp"
#include "tests/support/eventually.hpp"

namespace coherence {

class Wakeups : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    add_node(), add_node();
  }
  Node& node(int n) { return *nodes[n]->node; }
  uint32_t count(int n, uint16_t event) { return node(n).event(event).count.load(); }

  static constexpr uint16_t kWorker = 3, kLauncher = 5;
};

TEST_F(Wakeups, ASleeperOfAnotherNodeIsWoken) {
  std::atomic<bool> woken{false};
  const uint32_t seen = count(1, kWorker);
  std::thread sleeper([&] {
    while (count(1, kWorker) == seen) futex_wait(node(1).event(kWorker).count, seen, 10'000);
    woken = true;
  });
  EXPECT_FALSE(woken);
  node(0).wake(NodeId{1}, kWorker);
  EXPECT_TRUE(gcl_test::eventually([&] { return woken.load(); }));
  sleeper.join();
  EXPECT_EQ(count(0, kWorker), 0u) << "the same event of another node";
}

TEST_F(Wakeups, AnEventIsThereForItsOwnNode) {
  node(0).wake(NodeId{0}, kWorker);
  EXPECT_EQ(count(0, kWorker), 1u);
  EXPECT_EQ(count(1, kWorker), 0u);
}

TEST_F(Wakeups, WhereNobodyAttendsAnotherIsWokenToo) {
  node(0).wake(NodeId{1}, kWorker, kLauncher);
  EXPECT_TRUE(gcl_test::eventually([&] { return count(1, kWorker) == 1 && count(1, kLauncher) == 1; }));
  node(1).event(kWorker).attended = 1;
  node(0).wake(NodeId{1}, kWorker, kLauncher);
  EXPECT_TRUE(gcl_test::eventually([&] { return count(1, kWorker) == 2; }));
  EXPECT_EQ(count(1, kLauncher), 1u);
  EXPECT_EQ(count(0, kLauncher), 0u);
}

TEST_F(Wakeups, ANodeThatIsNotThereIsLeftAlone) {
  node(0).wake(NodeId{2}, kWorker, kLauncher);
  add_node();
  EXPECT_EQ(count(2, kWorker), 0u);
  node(0).wake(NodeId{2}, kWorker, kLauncher);
  EXPECT_TRUE(gcl_test::eventually([&] { return count(2, kWorker) == 1; }));
}

}  // namespace coherence
