// What is seen of a node while its incarnations come and go.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "coherence/region/table_changes.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"
#include "tests/support/eventually.hpp"

namespace coherence {
namespace {

constexpr NodeId kNode{1};
constexpr uint64_t kIncarnations = 200'000;

// Every second incarnation dies; what dies is never seen with the number of one that left.
void expect_own_states(const NodeInfo& seen, std::atomic<uint64_t>* met) {
  const bool died = seen.incarnation % 2 == 0;
  if (seen.dead() || seen.state == MemberState::kLeaving) {
    EXPECT_EQ(died, seen.dead()) << int(seen.state) << " of " << seen.incarnation;
  }
  *met += seen.dead();
}

// Incarnation after incarnation lives, and until a dead one was seen: the reader may have no processor for a while.
template <class Live>
void while_looking(TableChanges looks, Live live) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> met{0};
  std::thread reader([&] {
    while (!stop.load() && !::testing::Test::HasFailure()) expect_own_states(looks.info(kNode), &met);
  });
  uint64_t i = 0;
  EXPECT_TRUE(gcl_test::eventually([&] {
    for (uint64_t n = 0; n < kIncarnations && !::testing::Test::HasFailure(); n++) live(++i);
    return met.load() > 0 || ::testing::Test::HasFailure();
  }));
  stop = true;
  reader.join();
}

// region.state-of-incarnation
TEST(NodeTable, AStateIsSeenWithItsIncarnation) {
  auto table = std::make_unique<NodeTable>();
  TableChanges changes(*table, 4);
  while_looking(changes, [&](uint64_t i) {
    changes.publish(kNode, i, {});
    if (i % 2 == 1) {
      changes.begin_leaving(kNode);
      changes.withdraw(kNode);
      return;
    }
    ASSERT_TRUE(changes.died(kNode));
    changes.repairable(kNode);
    changes.swept(kNode, i);
    changes.forget(kNode);
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
  while_looking(mirror.members(), [&](uint64_t i) {
    table->head.epoch = i;
    table->node[kNode.value].incarnation = i;
    table->node[kNode.value].state = uint8_t(i % 2 == 0 ? MemberState::kSwept : MemberState::kLeaving);
    ASSERT_TRUE(mirror.take(*table));
  });
}

}  // namespace
}  // namespace coherence
