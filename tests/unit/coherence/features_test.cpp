// The switches: their names, and what each changes, counted with it and without it.
#include "coherence/line/features.hpp"

#include "cluster.hpp"
#include "coherence/base/os.hpp"
#include "coherence/stats/hot_pages.hpp"
#include "tests/support/eventually.hpp"

namespace coherence {

using gcl_test::eventually;
namespace {

constexpr Features without(Feature f) { return Features::all().without(f); }

}  // namespace

struct SessionAccess {
  static bool take_turn(Session& s, Line& line, bool exclusive) { return s.latches_.take_turn(line, exclusive); }
  static void no_turns(Line& line) { fields(line).turns = 0; }
  static void set_in_flight(Session& s, Line& line, bool is) {
    s.context_.node.in_flight[s.context_.node.index_of(line)] = is;
  }
  static void set_round_trip(Session& s, uint64_t ns) { s.context_.round_trip_ns = ns; }
  static bool too_early(Session& s, const Line& line, RequestSlot& slot) {
    return s.driver_.too_early(line, slot, true);
  }
  static void set_parked(Line& line, uint8_t count) { fields(line).state.parked_count = count; }
  static NodeId passed_to(const Line& line) { return fields(line).state.passed_to; }
  static void receive(Session& s, NodeId from, uint16_t slot) { s.server_.receive(from, slot); }
  // Whether the node stands back for a writer that was refused so often and takes the share now.
  static bool makes_way(Session& s, Line& line, uint8_t refused) {
    fields(line).state.serving.priority = refused;
    s.driver_.make_way(line);
    fields(line).state.serving = PeerRequest();
    return fields(line).stand_back_until.exchange(0) != 0;
  }
};

TEST(FeatureNames, AreReadFromAList) {
  Problem problem;
  EXPECT_EQ(*Features::parse("all", &problem), Features::all());
  EXPECT_EQ(*Features::parse("none", &problem), Features::none());
  EXPECT_EQ(*Features::parse("", &problem), Features::none());
  EXPECT_EQ(*Features::parse("forwarding,ageing", &problem),
            Features::none().with(Feature::kForwarding).with(Feature::kAgeing));
  EXPECT_EQ(*Features::parse("-lease,-hand-over", &problem), without(Feature::kLease).without(Feature::kHandOver));
  for (int f = 0; f < kFeatures; f++)
    EXPECT_EQ(*Features::parse(feature_name(Feature(f)), &problem), Features::none().with(Feature(f)));
}

TEST(FeatureNames, OthersAreRefusedAndTheKnownOnesNamed) {
  for (const char* text :
       {"forwarding,warp", "warp", "-warp", "forwarding,", ",", "Forwarding", "forwarding, ageing"}) {
    Problem problem;
    auto parsed = Features::parse(text, &problem);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error(), Errc::kNotFound);
    for (int f = 0; f < kFeatures; f++) EXPECT_NE(strstr(problem.text, feature_name(Feature(f))), nullptr) << text;
  }
  Problem problem;
  EXPECT_FALSE(Features::parse("forwarding,-lease", &problem).ok());
}

class Switches : public ClusterTest {
 protected:
  void start(Features on, int count = 3) {
    for (int i = 0; i < count; i++) {
      add_node(16, false);
      nodes[i]->node->set_features(on);
    }
    for (auto& n : nodes) n->start();
    for (int i = 0; i < count; i++) sessions.push_back(std::make_unique<Session>(*nodes[i]->node, SessionId{0}, &stop));
  }
  void TearDown() override {
    sessions.clear();
    ClusterTest::TearDown();
  }
  Line& line(int n) { return nodes[n]->line(*sessions[n], p); }
  uint64_t read(int n) {
    EXPECT_TRUE(sessions[n]->lock_shared(line(n), p).ok());
    const uint64_t seen = read_word(*nodes[n]->node, line(n));
    sessions[n]->unlock_shared(line(n));
    return seen;
  }
  void write(int n, uint64_t value) {
    ASSERT_TRUE(sessions[n]->lock_exclusive(line(n), p).ok());
    write_word(*nodes[n]->node, line(n), value);
    sessions[n]->unlock_exclusive(line(n));
  }
  // What all nodes did of `c` during `act`.
  template <class F>
  uint64_t count(Counter c, F act) {
    const uint64_t before = sum(c);
    act();
    return sum(c) - before;
  }
  uint64_t sum(Counter c) const {
    uint64_t n = 0;
    for (auto& node : nodes) n += node->count(c);
    return n;
  }

  PageId p = page(7);
  TestInterrupts stop;
  std::vector<std::unique_ptr<Session>> sessions;
};

// The page travels with the grant, or is read from the pool: one batch more of the asker's.
TEST_F(Switches, WithoutForwardingTheAskerReadsThePool) {
  start(without(Feature::kForwarding));
  write(1, 7);
  EXPECT_EQ(count(Counter::kBatches, [&] { write(0, 8); }), 3u);  // attempt; hand-over; READ
  EXPECT_EQ(count(Counter::kBatches, [&] { EXPECT_EQ(read(2), 8u); }), 3u);
  EXPECT_EQ(sum(Counter::kGrantMReceived), 1u);
  EXPECT_EQ(sum(Counter::kGrantSReceived), 1u);
  HotPage hot[4];
  for (int n = 0; n < 3; n++)
    for (uint32_t i = nodes[n]->node->hot_pages(hot, 4); i-- > 0;) EXPECT_EQ(hot[i].pages_sent, 0u);
}

TEST_F(Switches, WithForwardingThePageTravelsWithTheGrant) {
  start(Features::all());
  write(1, 7);
  EXPECT_EQ(count(Counter::kBatches, [&] { write(0, 8); }), 2u);
  EXPECT_EQ(count(Counter::kBatches, [&] { EXPECT_EQ(read(2), 8u); }), 2u);
}

// The owner gives the page up, for no node in particular; the requester tries again.
TEST_F(Switches, WithoutHandOverTheAskerTriesAgain) {
  start(without(Feature::kHandOver));
  write(1, 7);
  EXPECT_EQ(count(Counter::kBatches, [&] { write(0, 8); }), 3u);  // attempt; release; attempt with READ
  EXPECT_EQ(count(Counter::kBatches, [&] { EXPECT_EQ(read(2), 8u); }), 3u);
  EXPECT_EQ(sum(Counter::kGrantMSent) + sum(Counter::kGrantSSent), 0u);
  EXPECT_EQ(sum(Counter::kDoneSent), 2u);
  EXPECT_EQ(pool->peek_latch(p), LatchWord::sole_reader(NodeId{2}));  // the owner kept nothing
}

TEST_F(Switches, WithoutUpgradeTheShareIsGivenUpFirst) {
  for (Features on : {Features::all(), without(Feature::kUpgrade)}) {
    start(on);
    read(0);
    const uint64_t batches = count(Counter::kBatches, [&] { write(0, 3); });
    EXPECT_EQ(batches, on.has(Feature::kUpgrade) ? 1u : 2u);
    EXPECT_EQ(sum(Counter::kUpgradeFallbacks), on.has(Feature::kUpgrade) ? 0u : 1u);
    TearDown(), SetUp();
  }
}

// coherence.bounded-local-turns, with gamma = 4: while a peer waits for the node's three sessions and its worker, so
// many turns of readers.
TEST_F(Switches, TheLeaseBoundsTheTurnsOfReadersWhileAPeerWaits) {
  for (bool leased : {true, false}) {
    start(leased ? Features::all() : without(Feature::kLease), 2);
    nodes[0]->node->set_lease(4);
    {
      Session second(*nodes[0]->node, SessionId{1}, nullptr), third(*nodes[0]->node, SessionId{2}, nullptr);
      ASSERT_TRUE(eventually([&] { return nodes[0]->node->held().sessions == 4; }));
      read(0);
      ASSERT_TRUE(sessions[0]->lock_shared(line(0), p).ok());  // the line is never free
      std::thread peer([&] { write(1, 1); });
      ASSERT_TRUE(eventually([&] { return nodes[0]->count(Counter::kParked) == 1; }));
      int turns = 0;
      while (turns < 100 && second.try_lock_shared(line(0), p)) turns++, second.unlock_shared(line(0));
      EXPECT_EQ(turns, leased ? 4 * 4 : 100);
      sessions[0]->unlock_shared(line(0));
      peer.join();
      EXPECT_EQ(read(0), 1u);
    }
    TearDown(), SetUp();
  }
}

TEST_F(Switches, AWritersTurnCountsAsThoseOfAllReaders) {
  start(Features::all(), 1);
  nodes[0]->node->set_lease(4);
  ASSERT_TRUE(eventually([&] { return nodes[0]->node->held().sessions == 2; }));  // P = 2
  auto turn = [&](bool writes) { return SessionAccess::take_turn(*sessions[0], line(0), writes); };
  EXPECT_TRUE(turn(true) && turn(true) && turn(true));  // W = 3
  EXPECT_TRUE(turn(false) && turn(false));              // R / P = 1: gamma
  EXPECT_FALSE(turn(false) || turn(true));
  SessionAccess::set_in_flight(*sessions[0], line(0), true);  // it could not leave (coherence.early-grant-bound)
  EXPECT_TRUE(turn(false) && turn(true));
  SessionAccess::set_in_flight(*sessions[0], line(0), false);
  EXPECT_FALSE(turn(false) || turn(true));
  SessionAccess::no_turns(line(0));
  for (int i = 0; i < 8; i++) EXPECT_TRUE(turn(false));
  EXPECT_FALSE(turn(false) || turn(true));
}

// Wakes up, and stands still before it looks at what it waited for.
class Hesitant final : public Interrupts {
 public:
  explicit Hesitant(const Line& line) : line_(line) {}
  bool pending() noexcept override { return false; }
  void waits(Wait what) noexcept override {
    if (what == Wait::kPageLatch) asleep = true;
    if (what != Wait::kNone || line_.word().exclusive()) return;  // a slice of the sleep is over, without a wakeup
    woken = true;
    while (!may_go.load()) std::this_thread::yield();
  }
  std::atomic<bool> asleep{false}, woken{false}, may_go{false};

 private:
  const Line& line_;
};

// coherence.bounded-local-turns.  Between two local holders the line is free, and the node's worker looks: for what
// waits, and for what comes.
TEST_F(Switches, AWaiterWokenForItsTurnHasItBeforeAPeer) {
  for (const uint64_t come_ns : {uint64_t{600'000'000'000}, uint64_t{0}}) {
    start(Features::all());
    nodes[0]->stop();  // we are its worker
    nodes[0]->node->set_lease(16, come_ns);
    write(0, 1);
    ASSERT_TRUE(sessions[0]->lock_exclusive(line(0), p).ok());
    Hesitant hesitant(line(0));
    uint64_t seen = 0;
    std::thread next([&] {
      Session session(*nodes[0]->node, SessionId{1}, &hesitant);
      ASSERT_TRUE(session.lock_exclusive(line(0), p).ok());
      seen = read_word(*nodes[0]->node, line(0));
      session.unlock_exclusive(line(0));
    });
    ASSERT_TRUE(eventually([&] { return hesitant.asleep.load(); }));
    std::vector<std::thread> peers;
    std::atomic<int> served{0};
    const auto ask = [&](int n) {
      const uint64_t parked = nodes[0]->count(Counter::kParked);
      peers.emplace_back([&, n] { write(n, 2), ++served; });
      ASSERT_TRUE(eventually([&] {  // what is sent has not come yet
        EXPECT_TRUE(sessions[0]->serve(0).ok());
        return nodes[0]->count(Counter::kParked) > parked || line(0).msi() == MsiState::kInvalid;
      }));
    };
    ask(1);
    sessions[0]->unlock_exclusive(line(0));
    ASSERT_TRUE(eventually([&] { return hesitant.woken.load(); }));
    ask(2);
    EXPECT_EQ(line(0).msi(), come_ns ? MsiState::kModified : MsiState::kInvalid);
    hesitant.may_go = true;
    next.join();
    while (served < 2) ASSERT_TRUE(sessions[0]->serve(1).ok());
    for (std::thread& peer : peers) peer.join();
    EXPECT_EQ(seen, come_ns ? 1u : 2u);
    TearDown(), SetUp();
  }
}

// coherence.claim-then-ask.  The writer has the word before it asks, so a node that comes while it waits for a sharer
// comes after it.  Without a claim that node comes before it, and the writer has to ask again.  An early answer may be
// there before its bit has left the word, and be asked for twice.
TEST_F(Switches, NobodyGetsInBetweenAClaimAndItsWrite) {
  for (bool claims : {true, false}) {
    start(claims ? Features::all() : without(Feature::kClaim).without(Feature::kEarlyAnswers), 4);
    read(1), read(2);
    ASSERT_TRUE(sessions[1]->lock_shared(line(1), p).ok());
    std::thread writer([&] { write(0, 8); });
    ASSERT_TRUE(eventually([&] { return nodes[1]->count(Counter::kParked) == 1; }));
    EXPECT_EQ(LatchWord{pool->peek_latch(p)}.has_owner(), claims);
    std::atomic<uint64_t> seen{99};
    std::thread reader([&] { seen = read(3); });
    if (claims)
      ASSERT_TRUE(eventually([&] { return nodes[0]->count(Counter::kParked) == 1; }));
    else
      ASSERT_TRUE(eventually([&] { return seen == 0; }));
    sessions[1]->unlock_shared(line(1));
    writer.join();
    reader.join();
    EXPECT_EQ(seen, claims ? 8u : 0u);
    EXPECT_EQ(nodes[0]->count(Counter::kPeerInvSent), claims ? 2u : 3u);  // 1 and 2, and the one that came
    EXPECT_EQ(read(2), 8u);
    TearDown(), SetUp();
  }
}

// coherence.held-until-end, coherence.claim-then-ask.  A node that shares until a transaction's end is asked like
// all others, and the claim is taken back.
TEST_F(Switches, AClaimOverAHeldShareIsTakenBack) {
  for (bool shares : {true, false}) {
    start(Features::all());
    if (shares) read(0);
    read(2);
    ASSERT_TRUE(sessions[1]->lock_shared(line(1), p).ok());
    sessions[1]->hold(line(1), false, 77);
    sessions[1]->unlock_shared(line(1));
    const auto word = pool->peek_latch(p);
    EXPECT_EQ(sessions[0]->lock_exclusive(line(0), p).error(), Errc::kHeld);
    EXPECT_EQ(sessions[0]->holder().by, 77u);
    const LatchWord left{word.raw & ~LatchWord::reader_bit(NodeId{2})};  // node 2 may have answered early
    EXPECT_TRUE(eventually([&] { return pool->peek_latch(p) == left; }));
    EXPECT_EQ(line(0).msi(), shares ? MsiState::kShared : MsiState::kInvalid);
    EXPECT_EQ(read(2), 0u);
    sessions[1]->drop_hold(line(1), false, 77);
    write(0, 9);
    EXPECT_EQ(read(1), 9u);
    TearDown(), SetUp();
  }
}

// Every request is refused, because node 1 does not find its line: a sharer is given time, an owner is not.
TEST_F(Switches, ARefusedInvalidationIsSentAgainAfterAWhile) {
  const struct {
    Features on;
    bool shared, waits;
  } cases[] = {{without(Feature::kClaim), true, true},
               {without(Feature::kClaim).without(Feature::kResendInterval), true, false},
               {Features::all(), false, false}};
  for (const auto& c : cases) {
    const bool waits = c.waits;
    const Counter asked = c.shared ? Counter::kPeerInvSent : Counter::kPeerWrSent;
    start(c.on, 2);
    c.shared ? void(read(1)) : write(1, 5);
    Line& there = line(1);
    nodes[1]->directory.at(p) = nullptr;
    SessionAccess::set_round_trip(*sessions[0], 1'000'000);  // T = 1 ms: the longest
    std::thread asker([&] { EXPECT_EQ(sessions[0]->lock_exclusive(line(0), p).error(), Errc::kInterrupted); });
    const Counters& counters = sessions[0]->counters();
    ASSERT_TRUE(eventually([&] { return counters.get(asked) >= 10; }));
    const uint64_t sent = counters.get(asked), waited = counters.get(Counter::kResendWaits);
    if (waits) {
      EXPECT_GE(waited + 2, sent);  // each but the first; one may be on its way
    } else {
      EXPECT_EQ(waited, 0u);
    }
    stop.raised = true;
    asker.join();
    stop.raised = false;
    nodes[1]->directory.at(p) = &there;
    ASSERT_TRUE(eventually([&] { return pool->peek_latch(p) == LatchWord::owned_by(NodeId{0}); }));
    TearDown(), SetUp();
  }
}

// T = C * RTT / N_r: the second is half the first, and none is longer than a millisecond.
TEST_F(Switches, TheIntervalShrinksWithEachRefusal) {
  start(Features::all(), 1);
  RequestSlot slot{};
  slot.kind = RequestKind::kPeerInv;
  SessionAccess::set_round_trip(*sessions[0], 100'000);
  uint64_t before = 0;
  for (int refusals = 1; refusals <= 8; refusals++) {
    const uint64_t begin = monotonic_ns();
    ASSERT_TRUE(SessionAccess::too_early(*sessions[0], line(0), slot));
    const uint64_t end = monotonic_ns(), at = slot.resend_at.load(), interval = 400'000u / refusals;
    EXPECT_GE(at, begin + interval);
    EXPECT_LE(at, end + interval);
    EXPECT_TRUE(before == 0 || interval < before);
    before = interval;
    slot.resend_at = begin;  // it is time
    EXPECT_FALSE(SessionAccess::too_early(*sessions[0], line(0), slot));
    EXPECT_EQ(slot.resend_at, 0u);
  }
  SessionAccess::set_round_trip(*sessions[0], 1'000'000'000);
  slot.refusals = 0;
  ASSERT_TRUE(SessionAccess::too_early(*sessions[0], line(0), slot));
  EXPECT_LE(slot.resend_at, monotonic_ns() + 1'000'000);
  SessionAccess::set_parked(line(0), 1);  // a waiter for the round's end
  EXPECT_FALSE(SessionAccess::too_early(*sessions[0], line(0), slot));
  SessionAccess::set_parked(line(0), 0);
}

// coherence.readers-stand-back
TEST_F(Switches, ANodeStandsBackForAWriterThatWasRefused) {
  for (bool stands_back : {true, false}) {
    start(stands_back ? Features::all() : without(Feature::kStandBack), 1);
    EXPECT_FALSE(SessionAccess::makes_way(*sessions[0], line(0), 0));
    EXPECT_EQ(SessionAccess::makes_way(*sessions[0], line(0), 1), stands_back);
    TearDown(), SetUp();
  }
}

// session.waits-can-end
TEST_F(Switches, AFrameWhoseLatchADeadProcessHasIsWaitedForUntilTheFence) {
  start(Features::all(), 1);
  Line& l = nodes[0]->node->line(15);  // of no page
  ASSERT_TRUE(LatchTable::try_latch(l));
  std::thread waiter([&] { EXPECT_EQ(sessions[0]->assign(l, page(3), [] {}).error(), Errc::kFenced); });
  nodes[0]->node->fence("the test says so");
  waiter.join();
  EXPECT_FALSE(l.page().valid());
}

// coherence.request-taken-once.  A bit in the inbox for a slot that asks nothing (any more).
TEST_F(Switches, AnOutdatedMessageChangesNothing) {
  start(Features::all(), 2);
  write(1, 5);
  write(0, 6);
  write(1, 7);
  nodes[1]->stop();
  const LatchWord word = pool->peek_latch(p);
  SessionAccess::receive(*sessions[1], NodeId{0}, 0);  // node 0 asked so before, and was answered
  ASSERT_EQ(nodes[1]->count(Counter::kOutdated), 1u);
  ASSERT_EQ(pool->peek_latch(p), word);
  EXPECT_EQ(read(1), 7u);
}

// Else a miss of the next page would ask (coherence.reader-joins-taker), and be told to ask (coherence.refusal-hints),
// the node that took the last one.
TEST_F(Switches, ALineForgetsWhoTookItsLastPage) {
  start(Features::all(), 2);
  Session &a = *sessions[0], &b = *sessions[1];
  const PageId p = page(3), q = page(4);
  Line& line = nodes[0]->line(a, p);
  ASSERT_TRUE(a.lock_exclusive(line, p).ok());
  a.unlock_exclusive(line);
  Line& there = nodes[1]->line(b, p);
  ASSERT_TRUE(b.lock_exclusive(there, p).ok());
  b.unlock_exclusive(there);
  ASSERT_TRUE(eventually([&] { return line.word().free(); }));
  EXPECT_EQ(SessionAccess::passed_to(line), NodeId{1});
  ASSERT_TRUE(nodes[0]->evict(a, p));
  ASSERT_EQ(&nodes[0]->line(a, q), &line);
  EXPECT_FALSE(SessionAccess::passed_to(line).valid());
}

}  // namespace coherence
