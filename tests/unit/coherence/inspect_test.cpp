// Words in words, and a pool seen from outside.
#include "cluster.hpp"
#include "coherence/inspect/arena_view.hpp"
#include "coherence/inspect/pool_view.hpp"
#include "coherence/transport/shm/deaths.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "tests/support/line_text.hpp"
#include "tests/support/processes.hpp"

namespace coherence {
TEST(Texts, ALatchWordNamesItsOwnerOrItsSharers) {
  EXPECT_EQ(shown(LatchWord::free()), "0000000000000000: free");
  EXPECT_EQ(shown(LatchWord::owned_by(NodeId{2})), "0c00000000000000: owned by node 2");
  EXPECT_EQ(shown(LatchWord::shared_by(NodeSet::of(NodeId{1}).with(NodeId{5}))), "0000000000000022: shared by {1, 5}");
  EXPECT_EQ(shown(LatchWord::claimed_by(NodeId{0}, NodeSet::of(NodeId{1}))),
            "0400000000000002: owned by node 0, pending readers, or shares asked back, {1}");
  EXPECT_EQ(shown(LatchWord{uint64_t{63} << 58}), "fc00000000000000: not a latch word: its owner is 63");
}

TEST(Texts, ALocalWordNamesItsBits) {
  const LocalWord w =
      LocalWord{LocalWord::kPending | LocalWord::kExclusiveWaiters | 3 * LocalWord::kVersionOne | 2}.with_msi(
          MsiState::kShared);
  EXPECT_EQ(shown(w).substr(16), ": S, version 3, 2 shared holders, a request is parked, waiters for X");
  EXPECT_EQ(shown(LocalWord{}.with_exclusive()).substr(16), ": I, version 0, latched X");
}

TEST(Texts, ALineStateNamesItsOperationAndItsWaiters) {
  LineState s;
  s.msi = MsiState::kShared;
  s.op = LineOp::kWaitClaimed;
  s.waiting = NodeSet::of(NodeId{4});
  s.holds_shared = 2;
  s.held_by = 0x1f;
  s.parked[s.parked_count++] = {.from = 3, .kind = RequestKind::kPeerWr, .priority = 1, .slot = 9, .id = 77};
  EXPECT_EQ(shown(s),
            "state    S, operation WaitC\n"
            "  waits for the replies of {4}\n"
            "  holds    2 shared, 0 exclusive, the newest of transaction 1f\n"
            "  parked   PeerWr from node 3, session 2 (slot 1), priority 1, round 77");
}

TEST(Texts, WhatIsNoValueIsShownAndHarmsNobody) {
  LineState s;
  memset(static_cast<void*>(&s), 0xff, sizeof s);
  EXPECT_NE(shown(s).find("state    ?, operation ?"), std::string::npos);
  FlightEvent e;
  memset(static_cast<void*>(&e), 0xff, sizeof e);
  EXPECT_NE(shown(e).find("?"), std::string::npos);
  Text text;
  for (int i = 0; i < 10000; i++) text.add("%s", "too much");
  EXPECT_LT(text.size(), sizeof text);
}

class Views : public ClusterTest {
 protected:
  std::unique_ptr<PoolView> view() {
    Problem problem;
    auto opened = PoolView::open(path.c_str(), &problem);
    EXPECT_TRUE(opened.ok()) << problem.text;
    return opened.take();
  }
};

TEST_F(Views, APageAndItsLineAreSeenFromOutside) {
  TestNode& node = add_node(16, false);
  Session s(*node.node, SessionId{0}, nullptr);
  const PageId p = page(7, 1);
  Line& line = node.line(s, p);
  ASSERT_TRUE(s.lock_exclusive(line, p).ok());
  write_word(*node.node, line, 42);
  const auto pool_view = view();
  EXPECT_TRUE(pool_view->has(p));
  EXPECT_FALSE(pool_view->has(page(kPages, 1)));
  EXPECT_FALSE(pool_view->has(page(0, 2)));
  EXPECT_FALSE(pool_view->has(PageId{}));
  EXPECT_EQ(pool_view->latch(p)->raw, LatchWord::owned_by(NodeId{0}).raw);
  std::byte bytes[kPageSize];
  ASSERT_TRUE(pool_view->page(p, bytes));
  EXPECT_EQ(bytes[0], std::byte{0});  // not written back yet
  Problem problem;
  auto arena = ArenaView::open(*pool_view, NodeId{0}, &problem);
  ASSERT_TRUE(arena.ok()) << problem.text;
  Line::Sight seen;
  ASSERT_TRUE((*arena)->line(node.node->index_of(line), &seen));
  EXPECT_EQ(seen.page, p);
  EXPECT_EQ(seen.state.msi, MsiState::kModified);
  EXPECT_TRUE(seen.latch.exclusive());
  EXPECT_EQ(seen.dirty[0], 1u);
  ASSERT_TRUE((*arena)->frame(node.node->index_of(line), bytes));
  EXPECT_EQ(bytes[0], std::byte{42});
  int lines = 0, named = 0;
  (*arena)->for_lines([&](uint32_t, const Line::Sight& l) { return named += l.page.valid(), ++lines < 100; });
  EXPECT_EQ(std::pair(lines, named), std::pair(16, 1));
  EXPECT_FALSE((*arena)->line(16, &seen));
  s.unlock_exclusive(line);
}

TEST_F(Views, WhatIsNotThereIsSaidNotToBe) {
  add_node(16, false);
  Problem problem;
  EXPECT_EQ(ArenaView::open(*view(), NodeId{1}, &problem).error(), Errc::kNotFound);
  EXPECT_STREQ(problem.text, "node 1 is not in the pool");
  EXPECT_EQ(ArenaView::open(*view(), NodeId{200}, &problem).error(), Errc::kNotFound);
  EXPECT_EQ(PoolView::open((path + ".none").c_str(), &problem).error(), Errc::kNotFound);
  EXPECT_EQ(PoolView::open("/dev/null", &problem).error(), Errc::kCorrupt);
}

// A look at a pool whose node has died neither fences it nor waits for its lock file (inspect.leaves-no-trace).
TEST_F(Views, ALookChangesNothing) {
  EXPECT_TRUE(gcl_test::ended_well(gcl_test::child([&] {
    Problem problem;
    CHILD_VERIFY(Node::join(*pool, NodeId{1}, {.frames = 16, .sessions_max = 16}, &problem, shm_transport()).ok());
  })));
  const auto pool_view = view();
  Problem problem;
  EXPECT_TRUE(ArenaView::open(*pool_view, NodeId{1}, &problem).ok()) << problem.text;
  EXPECT_EQ(MappedPool::of(*pool).table().fence.load(), 0u);
  EXPECT_TRUE(died(MappedPool::of(*pool), NodeId{1}));
}

TEST_F(Views, AFileThatIsCutShortIsAnErrorAndNoSignal) {
  TestNode& node = add_node(16, false);
  const auto pool_view = view();
  Problem problem;
  auto arena = ArenaView::open(*pool_view, NodeId{0}, &problem);
  ASSERT_TRUE(arena.ok());
  ASSERT_EQ(truncate((*arena)->path().c_str(), 4096), 0);
  Line::Sight seen;
  EXPECT_FALSE((*arena)->line(0, &seen));
  std::byte bytes[kPageSize];
  EXPECT_FALSE((*arena)->frame(0, bytes));
  EXPECT_EQ(truncate((*arena)->path().c_str(), off_t((*arena)->layout().bytes)), 0);  // it is unmapped by its node
  (void)node;
}

}  // namespace coherence
