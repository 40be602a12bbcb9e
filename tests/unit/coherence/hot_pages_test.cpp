// The table of hot pages: exact for what it holds, honest about what it missed.
#include "coherence/stats/hot_pages.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/coherence/cluster.hpp"

namespace {

using namespace coherence;

std::unique_ptr<HotPages> empty_table() { return std::make_unique<HotPages>(); }

PageId page(uint64_t n) { return PageId{n}; }

TEST(HotPages, CountsEachKindAndPutsTheHottestFirst) {
  auto table = empty_table();
  for (int i = 0; i < 3; i++) table->count(page(0), PageMessage::kRequestSent, nullptr);
  table->count(page(0), PageMessage::kPageReceived, nullptr);
  for (int i = 0; i < 5; i++) table->count(page(9), PageMessage::kRequestReceived, nullptr);
  table->count(page(9), PageMessage::kPageSent, nullptr);
  table->count(page(4), PageMessage::kPageSent, nullptr);
  HotPage top[8];
  ASSERT_EQ(3u, table->top(top, 8, nullptr));
  EXPECT_EQ(page(9), top[0].id());
  EXPECT_EQ(5u, top[0].requests_received);
  EXPECT_EQ(1u, top[0].pages_sent);
  EXPECT_EQ(page(0), top[1].id());
  EXPECT_EQ(3u, top[1].requests_sent);
  EXPECT_EQ(1u, top[1].pages_received);
  EXPECT_EQ(page(4), top[2].id());
  EXPECT_EQ(0u, top[0].missed_max + top[1].missed_max + top[2].missed_max);
  ASSERT_EQ(1u, table->top(top, 1, nullptr));
  EXPECT_EQ(page(9), top[0].id());
  table->reset(nullptr);
  EXPECT_EQ(0u, table->top(top, 8, nullptr));
}

// What many cold pages do to it: the hot ones stay, and no claim is broken.
TEST(HotPages, HeavyHittersStayWhateverComesBetween) {
  auto table = empty_table();
  constexpr uint64_t kHot = 20, kCold = 50'000;
  std::vector<uint64_t> asked(kCold);
  for (uint64_t i = 0; i < kCold; i++) {
    table->count(page(i), PageMessage::kRequestSent, nullptr), asked[i]++;
    table->count(page(i % kHot * 1000), PageMessage::kRequestSent, nullptr), asked[i % kHot * 1000]++;
  }
  HotPage top[HotPages::kBuckets * HotPages::kWays];
  const uint32_t count = table->top(top, std::size(top), nullptr);
  EXPECT_EQ(std::size(top), count);
  for (uint32_t i = 0; i < kHot; i++) EXPECT_EQ(0u, top[i].id().raw % 1000) << i;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t truth = asked[top[i].id().raw];
    EXPECT_LE(top[i].messages(), truth);
    EXPECT_GE(top[i].messages() + top[i].missed_max, truth);
  }
}

TEST(HotPages, LosesNothingToThreads) {
  auto table = empty_table();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; i++) table->count(page(i % 4), PageMessage::kRequestSent, nullptr);
    });
  for (auto& t : threads) t.join();
  HotPage top[8];
  ASSERT_EQ(4u, table->top(top, 8, nullptr));
  for (int i = 0; i < 4; i++) EXPECT_EQ(10'000u, top[i].requests_sent);
}

class HotPagesOfNodes : public ClusterTest {};

// One page written in turns by two nodes, others rarely: each hand-over is a request and a page, on both sides.
TEST_F(HotPagesOfNodes, APageWrittenInTurnsIsTheHottestAndIsCountedExactly) {
  for (int i = 0; i < 2; i++) add_node();
  Session one(*nodes[0]->node, SessionId{0}, nullptr), two(*nodes[1]->node, SessionId{0}, nullptr);
  auto write = [&](int n, Session& session, PageId p) {
    Line& line = nodes[n]->line(session, p);
    ASSERT_TRUE(session.lock_exclusive(line, p).ok());
    session.unlock_exclusive(line);
  };
  for (uint64_t n = 1; n < 12; n++) write(0, one, ClusterTest::page(n));  // without messages
  HotPage top[16];
  EXPECT_EQ(0u, nodes[0]->node->hot_pages(top, 16));
  write(1, two, ClusterTest::page(3));  // one page over
  for (int i = 0; i < 20; i++) write(1, two, ClusterTest::page(7, 1)), write(0, one, ClusterTest::page(7, 1));
  ASSERT_EQ(2u, nodes[0]->node->hot_pages(top, 16));
  EXPECT_EQ(ClusterTest::page(7, 1), top[0].id());
  // Node 1 came to a free page first; then 20 times node 0 asked, 19 times node 1.
  EXPECT_EQ(20u, top[0].requests_sent);
  EXPECT_EQ(20u, top[0].pages_received);
  EXPECT_EQ(19u, top[0].requests_received);
  EXPECT_EQ(19u, top[0].pages_sent);
  EXPECT_EQ(ClusterTest::page(3), top[1].id());
  EXPECT_EQ(2u, top[1].messages());
  ASSERT_EQ(2u, nodes[1]->node->hot_pages(top, 16));
  EXPECT_EQ(19u, top[0].requests_sent);
  EXPECT_EQ(20u, top[0].pages_sent);
  nodes[1]->node->reset_hot_pages();
  EXPECT_EQ(0u, nodes[1]->node->hot_pages(top, 16));
}

}  // namespace
