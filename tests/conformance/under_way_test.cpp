// What a session does while its batches travel (coherence.event-ends-batch, coherence.never-waits-in-post,
// coherence.under-way-inside-calls, coherence.room-before-latch), on every transport: one whose batches are complete at
// once has none under way.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coherence/base/os.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/session.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "small_pool.hpp"
#include "tests/support/far_messenger.hpp"

namespace coherence {

struct SessionAccess {
  static int most_under_way(const Session& s) { return s.context_.most_under_way; }
};

}  // namespace coherence

namespace conformance {

using namespace coherence;  // NOLINT: the tests speak of nothing else

namespace {

constexpr NodeId kOwner{0}, kAsker{1};
constexpr int kPages = 24;
constexpr uint32_t kFramesEach = 32;

// All that is on its way arrives when a sender waits: a wait is one way.  No thread: the test says what happens when.
class Ways final : public gcl_test::Network {
 public:
  void carry(std::function<void()> arrival) override { under_way_.push_back(std::move(arrival)); }
  void wait() override {
    waits++;
    if (before_wait) before_wait();
    for (const auto& arrival : std::exchange(under_way_, {})) arrival();
    if (after_wait) after_wait();
  }
  std::optional<int> breaks_after(int) override { return std::nullopt; }
  bool one_in(uint32_t) override { return false; }

  int waits = 0;
  std::function<void()> before_wait, after_wait;

 private:
  std::vector<std::function<void()>> under_way_;
};

class WaysTransport final : public coherence::ShmTransport {
 public:
  std::unique_ptr<Memory> open_memory(NodeParts& node, Counters& counters) override {
    return std::make_unique<gcl_test::FarMemory>(
        std::make_unique<ShmMemory>(coherence::MappedPool::of(node.pool), counters), *ways);
  }
  std::unique_ptr<Messenger> open_messenger(NodeParts& node, Counters& counters) override {
    return std::make_unique<gcl_test::FarMessenger>(node, counters, ways);
  }
  const std::shared_ptr<Ways> ways = std::make_shared<Ways>();
};

class Pages final : public FrameDirectory {
 public:
  Line* find(PageId page) noexcept override { return line[page.number()]; }
  std::array<Line*, kPages> line{};
};

class Interrupt final : public Interrupts {
 public:
  bool pending() noexcept override { return is(); }
  std::function<bool()> is = [] { return false; };
};

// Node 0 owns pages, and node 1 asks for them, from slots that the test fills in.
class BatchesUnderWay : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    Problem problem;
    for (const NodeId n : {kOwner, kAsker}) {
      auto joined = Node::join(*pool_, n, {.frames = kFramesEach, .sessions_max = 8, .private_bytes = 4096}, &problem,
                               shm_transport());
      ASSERT_TRUE(joined.ok()) << problem.text;
      node_[n.value] = joined.take();
      if (is_far()) node(n).set_transport(transport_);
    }
    share_mapping(node(kOwner), node(kAsker));
    node(kOwner).set_upcalls(&pages_, nullptr);
    asks_ = shm_transport().open_messenger(node(kAsker).parts(), counters_);
    worker_ = std::make_unique<Session>(node(kOwner), SessionId{0}, &end_);
    user_ = std::make_unique<Session>(node(kOwner), SessionId{1}, &interrupt_);
  }
  void TearDown() override {
    user_.reset(), worker_.reset(), asks_.reset();
    for (auto& n : node_) n.reset();
  }

  static bool is_far() { return GetParam(); }
  Node& node(NodeId n) { return *node_[n.value]; }
  Ways& ways() { return *transport_.ways; }
  static PageId page(int i) { return PageId::at(MemoryNodeId{0}, uint64_t(i)); }
  Line& line(int i) {
    Line*& there = pages_.line[size_t(i)];
    if (there == nullptr) {
      Line& line = node(kOwner).line(uint32_t(i));
      EXPECT_TRUE(user_->assign(line, page(i), [&] { there = &line; }).ok());
    }
    return *there;
  }
  void own(int count) {
    for (int i = 0; i < count; i++) {
      ASSERT_TRUE(user_->lock_exclusive(line(i), page(i)).ok());
      user_->unlock_exclusive(line(i));
    }
  }
  // Node 1 asks for page i as a writer, with a slot of each page's own.
  void ask(int i) {
    RequestSlot& slot = node(kAsker).parts().slot(uint16_t(i));
    slot.line.store(uint32_t(i));
    slot.serial.store(1);
    slot.page.store(page(i).raw);
    slot.kind.store(RequestKind::kPeerWr);
    slot.reply[kOwner.value].store(ReplyWord::asked(1, node(kOwner).incarnation()).raw);
    asks_->ask(kOwner, uint16_t(i), page(i));
  }
  bool is_granted(int i) {
    const ReplyWord word{node(kAsker).parts().slot(uint16_t(i)).reply[kOwner.value].load()};
    return word.is_reply() && word.kind() == ReplyKind::kGrantM &&
           pool_->peek_latch(page(i)) == LatchWord::owned_by(kAsker) &&
           !node(kAsker).parts().grant_in_flight(node(kAsker).line(uint32_t(i)));
  }
  int granted(int count) {
    worker_->flush_messages(), user_->flush_messages();
    int sum = 0;
    for (int i = 0; i < count; i++) sum += is_granted(i);
    return sum;
  }
  bool asked() { return node(kOwner).parts().arena->inbox_peers.load() != 0; }
  int most_under_way(const Session& s) { return SessionAccess::most_under_way(s); }

  Interrupt end_, interrupt_;
  std::unique_ptr<Session> worker_, user_;

 private:
  WaysTransport transport_;
  SmallPool pool_;
  std::unique_ptr<Node> node_[2];
  Pages pages_;
  Counters counters_{};
  std::unique_ptr<Messenger> asks_;
};

// A round trip is two ways, for one page and for many.
TEST_P(BatchesUnderWay, HandOversOfManyPagesTakeOneRoundTrip) {
  constexpr int kMany = 12;
  own(kMany);
  for (int i = 0; i < kMany; i++) ask(i);
  const int before = ways().waits;
  ASSERT_TRUE(worker_->serve(0).ok());
  EXPECT_EQ(ways().waits - before, is_far() ? 2 : 0);
  EXPECT_EQ(granted(kMany), kMany);
  EXPECT_EQ(most_under_way(*worker_), is_far() ? kMany : 0);
  EXPECT_EQ(worker_->counters().get(Counter::kOverlapped), is_far() ? uint64_t(kMany - 1) : 0u);
}

// What finds no place is parked, and served when there is one.
TEST_P(BatchesUnderWay, MoreRequestsThanPlacesAreServedInTurn) {
  own(kPages);
  for (int i = 0; i < kPages; i++) ask(i);
  for (int round = 0; round < 3; round++) ASSERT_TRUE(worker_->serve(0).ok());
  EXPECT_EQ(granted(kPages), kPages);
  EXPECT_EQ(most_under_way(*worker_), is_far() ? ProtocolDriver::kUnderWayMax : 0);
}

// One comes at each moment of the others' travels, and is taken before the worker waits again.
TEST_P(BatchesUnderWay, NoRequestWaitsForAnothersBatch) {
  constexpr int kMany = 10;
  own(kMany);
  ASSERT_TRUE(worker_->serve(0).ok());  // it has seen which nodes are there: the next call does not return for that
  int asked_for = 1, waited_beside_request = 0;
  ways().before_wait = [&] { waited_beside_request += asked(); };
  ways().after_wait = [&] {
    if (asked_for < kMany) ask(asked_for++);
  };
  end_.is = [&] { return !is_far() || asked_for == kMany; };
  ask(0);
  ASSERT_TRUE(worker_->serve(60'000).ok());
  ways().before_wait = ways().after_wait = nullptr;
  while (asked()) ASSERT_TRUE(worker_->serve(0).ok());
  EXPECT_EQ(waited_beside_request, 0);
  EXPECT_EQ(granted(is_far() ? kMany : 1), is_far() ? kMany : 1);
  EXPECT_EQ(most_under_way(*worker_), is_far() ? 2 : 0) << "each travels for two waits";
}

TEST_P(BatchesUnderWay, AnUnlockerReturnsWhenItsBatchIsComplete) {
  own(3);
  ASSERT_TRUE(user_->lock_exclusive(line(0), page(0)).ok());
  ask(0);
  ASSERT_TRUE(worker_->serve(0).ok());  // parks it
  EXPECT_EQ(granted(1), 0);
  user_->unlock_exclusive(line(0));
  EXPECT_EQ(granted(1), 1);
  ask(1);
  ASSERT_TRUE(user_->lock_exclusive(line(2), page(2)).ok());
  user_->unlock_exclusive(line(2));
  EXPECT_EQ(granted(2), 2);
  EXPECT_EQ(user_->counters().get(Counter::kServedByUnlocker), 2u);
}

// The batch ends, and what it brought stays with the node.
TEST_P(BatchesUnderWay, AnInterruptedSessionLeavesNoBatchBehind) {
  Line& wanted = line(0);
  interrupt_.is = [] { return true; };
  const Status got = user_->lock_exclusive(wanted, page(0));
  EXPECT_EQ(got.ok(), !is_far());
  if (!got) {
    EXPECT_EQ(got.error(), Errc::kInterrupted);
    EXPECT_EQ(user_->counters().get(Counter::kAbandoned), 1u);
    EXPECT_EQ(wanted.msi(), MsiState::kModified);
    EXPECT_TRUE(wanted.word().free());
    EXPECT_EQ(node(kOwner).held().request_slots, 0u);
    EXPECT_TRUE(user_->try_lock_exclusive(wanted, page(0)).ok());
  }
  user_->unlock_exclusive(wanted);
}

// Where a look at the word is a round trip, a node that made way for a writer does not look.
TEST_P(BatchesUnderWay, StandingBackCostsNoRoundTrip) {
  own(1);                        // now the session knows how far the word is
  const auto stood_back = [&] {  // unless this thread had no processor while it was to
    fields(line(1)).stand_back_until.store(monotonic_ns() + 200'000);
    if (!user_->lock_shared(line(1), page(1)).ok()) return false;
    user_->unlock_shared(line(1));
    return user_->counters().get(Counter::kStoodBack) == 1;
  };
  EXPECT_TRUE(gcl_test::eventually(stood_back));
  EXPECT_EQ(user_->counters().get(Counter::kLoads) > 0, !is_far());
}

INSTANTIATE_TEST_SUITE_P(Transport, BatchesUnderWay, testing::Values(false, true),
                         [](const auto& info) { return std::string(info.param ? "far" : "shm"); });

}  // namespace
}  // namespace conformance
