// EvictionWindow over shm, where a batch is complete when it was posted.  Several under way at once: tests/sim.
#include "cluster.hpp"

namespace coherence {

class Evictions : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    add_node(40);
    add_node();
    session = std::make_unique<Session>(*nodes[0]->node, SessionId{0}, nullptr);
  }
  void TearDown() override {
    session.reset();
    ClusterTest::TearDown();
  }
  Line& written(PageId page, uint32_t ranges = 1) {
    Line& line = nodes[0]->line(*session, page);
    EXPECT_TRUE(session->lock_exclusive(line, page).ok());
    for (uint32_t i = 0; i < ranges; i++) write_word(*nodes[0]->node, line, page.raw, {}, i * 256);
    session->unlock_exclusive(line);
    lines.push_back(&line), pages.push_back(page);
    return line;
  }
  uint64_t batches() const { return nodes[0]->count(Counter::kBatches); }

  std::unique_ptr<Session> session;
  std::vector<Line*> lines;
  std::vector<PageId> pages;
};

// What a frame's taker sees: how many batches there have been, and that the frame can have its next page.
class Reuser final : public FrameTaker {
 public:
  Reuser(Session& session, TestNode& node) : session_(session), node_(node) {}
  void take(Line& line, PageId page) noexcept override {
    batches.push_back(node_.count(Counter::kBatches));
    node_.directory.at(page).store(nullptr);
    session_.finish_evict(line);
    const PageId next = PageId::at(page.node(), page.number() + 30);
    EXPECT_TRUE(session_.assign(line, next, [&] { node_.directory.at(next).store(&line); }).ok());
  }
  std::vector<uint64_t> batches;

 private:
  Session& session_;
  TestNode& node_;
};

TEST_F(Evictions, AFrameHasItsNextPageBeforeTheNextBatchIsPosted) {
  for (uint64_t i = 0; i < 6; i++) written(page(i, uint8_t(i % 2)));
  Reuser taker(*session, *nodes[0]);
  const uint64_t before = batches();
  {
    EvictionWindow window(*session, taker);
    EXPECT_EQ(window.add(lines.data(), pages.data(), 6), 6);
    EXPECT_EQ(window.under_way(), 0);
    EXPECT_EQ(taker.batches.size(), 6u);
  }
  EXPECT_EQ(taker.batches,
            (std::vector<uint64_t>{before + 1, before + 1, before + 1, before + 2, before + 2, before + 2}));
  for (size_t i = 0; i < lines.size(); i++) {
    const PageId next = PageId::at(pages[i].node(), pages[i].number() + 30);
    ASSERT_TRUE(session->lock_exclusive(*lines[i], next).ok());
    session->unlock_exclusive(*lines[i]);
    EXPECT_EQ(pool->peek_latch(next), LatchWord::owned_by(NodeId{0}));
    EXPECT_EQ(pool->peek_latch(pages[i]), LatchWord::free());
  }
}

TEST_F(Evictions, OfSeveralGroupsWhatIsBusyStaysAndTheRestGoes) {
  for (uint64_t i = 0; i < 8; i++) written(page(i, uint8_t(i / 2 % 2)));
  Line& latched = *lines[3];
  ASSERT_TRUE(session->lock_shared(latched, pages[3]).ok());
  TestTaker taker(*nodes[0], *session);
  {
    EvictionWindow window(*session, taker);
    EXPECT_EQ(window.add(lines.data(), pages.data(), 4), 3);
    EXPECT_EQ(window.add(lines.data() + 4, pages.data() + 4, 4), 4);
    EXPECT_EQ(window.add(lines.data(), pages.data(), 8), 0);  // gone, or busy
  }
  EXPECT_EQ(taker.taken.size(), 7u);
  EXPECT_EQ(nodes[0]->directory.find(pages[3]), &latched);
  session->unlock_shared(latched);
}

// 5 pages of 9 ranges would not fit, nor would 17 of one.
TEST_F(Evictions, ABatchHasSixteenLinesOrWhatItsOperationsHold) {
  for (uint64_t i = 0; i < 33; i++) written(page(i));
  TestTaker taker(*nodes[0], *session);
  EvictionWindow window(*session, taker);
  uint64_t before = batches();
  EXPECT_EQ(window.add(lines.data(), pages.data(), 33), 33);
  EXPECT_EQ(batches() - before, 3u);
  lines.clear(), pages.clear();
  for (uint64_t i = 0; i < 12; i++) written(page(i), 8);
  before = batches();
  EXPECT_EQ(window.add(lines.data(), pages.data(), 12), 12);
  EXPECT_EQ(batches() - before, 2u);
}

}  // namespace coherence
