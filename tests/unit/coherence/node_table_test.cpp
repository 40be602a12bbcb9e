// What is seen of a node while its incarnations come and go.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "coherence/region/table_changes.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"

namespace coherence {
namespace {

constexpr NodeId kNode{1};
constexpr uint64_t kIncarnations = 200'000;

// Every second incarnation dies; what dies is never seen with the number of one that left.
void expect_own_states(const NodeInfo& seen, uint64_t* met) {
  const bool died = seen.incarnation % 2 == 0;
  if (seen.dead() || seen.state == MemberState::kLeaving) {
    EXPECT_EQ(died, seen.dead()) << int(seen.state) << " of " << seen.incarnation;
  }
  *met += seen.dead();
}

template <class Body>
void while_looking(TableChanges looks, Body body) {
  std::atomic<bool> stop{false};
  uint64_t met = 0;
  std::thread reader([&] {
    while (!stop.load() && !::testing::Test::HasFailure()) expect_own_states(looks.info(kNode), &met);
  });
  body();
  stop = true;
  reader.join();
  EXPECT_GT(met, 0u);
}

// region.state-of-incarnation
TEST(NodeTable, AStateIsSeenWithItsIncarnation) {
  auto table = std::make_unique<NodeTable>();
  TableChanges changes(*table, 4);
  while_looking(changes, [&] {
    for (uint64_t i = 1; i <= kIncarnations; i++) {
      changes.publish(kNode, i, {});
      if (i % 2 == 1) {
        changes.begin_leaving(kNode);
        changes.withdraw(kNode);
        continue;
      }
      ASSERT_TRUE(changes.died(kNode));
      changes.repairable(kNode);
      changes.swept(kNode, i);
      changes.forget(kNode);
    }
  });
}

// Tables are skipped: a node may be swept in one, and leave in the next.
TEST(Mirror, AStateIsSeenWithItsIncarnation) {
  struct alignas(64) Memory {
    std::byte bytes[tcp::Mirror::kBytes] = {};
  };
  auto memory = std::make_unique<Memory>();
  tcp::Mirror& mirror = tcp::Mirror::at(memory.get());
  auto table = std::make_unique<tcp::Table>();
  table->head.nodes_max = 4;
  while_looking(mirror.members(), [&] {
    for (uint64_t i = 1; i <= kIncarnations; i++) {
      table->head.epoch = i;
      table->node[kNode.value].incarnation = i;
      table->node[kNode.value].state = uint8_t(i % 2 == 0 ? MemberState::kSwept : MemberState::kLeaving);
      ASSERT_TRUE(mirror.take(*table));
    }
  });
}

}  // namespace
}  // namespace coherence
