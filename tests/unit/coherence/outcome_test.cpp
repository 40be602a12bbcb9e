// A batch that may or may not have taken place: the node cuts itself off, whichever it was, and every wait ends.
#include <memory>
#include <thread>

#include "cluster.hpp"
#include "tests/support/breaking_transport.hpp"

namespace coherence {

class UnknownOutcome : public ClusterTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    transport.took_place = GetParam();
    add_node(16, false);
    nodes[0]->node->set_transport(transport);
    nodes[0]->start();
    add_node();
    session = std::make_unique<Session>(*nodes[0]->node, SessionId{0}, nullptr);
    peer = std::make_unique<Session>(*nodes[1]->node, SessionId{0}, nullptr);
  }
  void TearDown() override {
    session.reset(), peer.reset();
    ClusterTest::TearDown();
  }
  void expect_cut_off() {
    for (auto& n : nodes) {
      EXPECT_TRUE(n->node->fenced());
      EXPECT_STREQ(n->node->fence_reason(), "node 0 lost a memory node in the middle of an operation");
    }
    // What a node has in its frames, it may look at: the layer above asks whether it is fenced.
    EXPECT_EQ(session->lock_exclusive(nodes[0]->line(*session, page(9)), page(9)).error(), Errc::kFenced);
    EXPECT_EQ(peer->lock_shared(nodes[1]->line(*peer, page(9)), page(9)).error(), Errc::kFenced);
  }
  Line& owned(Session& by, int n) {
    Line& line = nodes[n]->line(by, p);
    EXPECT_TRUE(by.lock_exclusive(line, p).ok());
    write_word(*nodes[n]->node, line, 7);
    by.unlock_exclusive(line);
    return line;
  }

  gcl_test::BreakingTransport transport;
  const PageId p = page(3);
  std::unique_ptr<Session> session, peer;
};

TEST_P(UnknownOutcome, OfAFetch) {
  Line& line = nodes[0]->line(*session, p);
  transport.break_after(0);
  EXPECT_EQ(session->lock_shared(line, p).error(), Errc::kFenced);
  expect_cut_off();
}

TEST_P(UnknownOutcome, OfAClaim) {
  owned(*peer, 1);
  Line& line = nodes[0]->line(*session, p);
  ASSERT_TRUE(session->lock_shared(line, p).ok());
  session->unlock_shared(line);
  transport.break_after(0);
  EXPECT_EQ(session->lock_exclusive(line, p).error(), Errc::kFenced);
  EXPECT_EQ(session->lock_shared(line, p).error(), Errc::kFenced) << "its operation has no end";
  expect_cut_off();
}

TEST_P(UnknownOutcome, OfAnEviction) {
  Line& line = owned(*session, 0);
  transport.break_after(0);
  TestTaker taker(*nodes[0], *session);
  {
    EvictionWindow window(*session, taker);
    Line* lines[] = {&line};
    EXPECT_EQ(window.add(lines, &p, 1), 1);
    window.finish();
    EXPECT_EQ(window.under_way(), 0);
  }
  EXPECT_TRUE(taker.taken.empty()) << "what the word says of the page is not known";
  expect_cut_off();
}

TEST_P(UnknownOutcome, OfAnEvictionOfOnePage) {
  Line& line = owned(*session, 0);
  transport.break_after(0);
  EXPECT_EQ(session->try_evict(line, p).error(), Errc::kFenced) << "the caller must not free the frame";
  expect_cut_off();
}

TEST_P(UnknownOutcome, OfAWriteBack) {
  Line& line = owned(*session, 0);
  transport.break_after(0);
  EXPECT_EQ(session->write_back(line, p).error(), Errc::kFenced);
  EXPECT_NE(line.first_change(), Line::kNoChange) << "its redo is still needed";
  expect_cut_off();
}

TEST_P(UnknownOutcome, OfAHandOverThatAPeerWaitsFor) {
  owned(*session, 0);
  transport.break_after(0);
  Line& there = nodes[1]->line(*peer, p);
  EXPECT_EQ(peer->lock_exclusive(there, p).error(), Errc::kFenced) << "node 0's worker hands over";
  expect_cut_off();
}

// A writer that comes back to a page where it made way looks at the word first.
TEST_P(UnknownOutcome, OfAConvenience) {
  Memory& memory = session->memory();
  const PoolAddress word = pool->latch_address(p);
  transport.break_after(0);
  EXPECT_EQ(memory.load(word).error(), Errc::kFenced);
  expect_cut_off();
  EXPECT_EQ(memory.faa(word, 0).error(), Errc::kFenced);
  EXPECT_EQ(memory.cas(word, 0, 0).error(), Errc::kFenced);
}

INSTANTIATE_TEST_SUITE_P(TookPlace, UnknownOutcome, testing::Bool());

}  // namespace coherence
