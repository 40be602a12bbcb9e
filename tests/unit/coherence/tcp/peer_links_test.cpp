// Links of peers: which side begins them, what becomes of messages when one breaks or its peer is gone, and what ends
// one.
#include <algorithm>
#include <random>

#include "peers.hpp"
#include "tests/support/cutting_proxy.hpp"
#include "tests/support/longer.hpp"

namespace coherence::tcp {
namespace {

class TcpPeerLinks : public TcpPeers {};

// peers.later-one-dials
TEST_F(TcpPeerLinks, ANewcomerReachesAllBeforeItIsInTheNodeTable) {
  PeerNode &c = join(kC), &b = join(kB);
  PeerNode& a = start(kA);
  EXPECT_FALSE(a.worker->peers().reaches(NodeSet::of(kB)));
  ASSERT_TRUE(until([&] { return a.worker->peers().reaches(NodeSet::of(kB).with(kC)); })) << logs();
  EXPECT_TRUE(until([&] { return b.worker->peers().reaches(NodeSet::of(kA)); }));
  EXPECT_TRUE(c.worker->peers().reaches(NodeSet::of(kB))) << "it did not dial itself";
  EXPECT_FALSE(a.worker->peers().reaches(NodeSet::of(kA)));
  a.publish();
  a.ask(kC, 1);
  c.ask(kA, 1);
  PeerRequest request;
  EXPECT_TRUE(comes(c, &request) && comes(a, &request)) << logs();
}

TEST_F(TcpPeerLinks, WhatIsLeftBeforeThereIsALinkGoesWhenThereIsOne) {
  PeerNode& a = join(kA);
  PeerNode& b = start(kB);
  b.publish();  // nobody waited for its links
  a.ask(kB, 1);
  a.wakes->wake(kB, 1, Wakeup::kNone);
  for (int i = 0; i < 5; i++) a.worker->run_once(0);
  PeerRequest request;
  EXPECT_TRUE(comes(b, &request)) << logs();
  EXPECT_TRUE(until([&] { return b.parts.arena->event[1].count == 1; }));
}

TEST_F(TcpPeerLinks, ANodeWhoseAddressIsNotKnownIsReachedWhenItIs) {
  join(kA);
  sockets.known = false;
  PeerNode& b = start(kB);
  run_all();
  EXPECT_TRUE(b.log.tell("nobody says where node 0 (start 10) listens")) << logs();
  EXPECT_FALSE(b.worker->peers().reaches(NodeSet::of(kA)));
  sockets.known = true;
  b.worker->peers().members_changed();
  EXPECT_TRUE(until([&] { return b.worker->peers().reaches(NodeSet::of(kA)); })) << logs();
}

// A peer that is gone has no link from the moment at which the node table says so.
TEST_F(TcpPeerLinks, WhatADeadNodeSaidLastIsNotHeard) {
  PeerNode &a = join(kA), &b = join(kB);
  a.ask(kB, 1), a.ask(kB, 2);
  PeerRequest first, second;
  ASSERT_TRUE(comes(b, &first) && comes(b, &second));
  (void)grant(b, first, 1, true);
  ASSERT_TRUE(until([&] { return a.word(1, kB).is_reply(); }));
  (void)grant(b, second, 1, true);
  for (int i = 0; i < 5; i++) b.worker->run_once(0);  // it is with a's system
  b.is(MemberState::kDead);
  run_all();
  EXPECT_TRUE(a.word(2, kB).is_taken()) << "quiescing finds what had come before, and nothing comes later";
  EXPECT_FALSE(a.in_flight(2));
  EXPECT_TRUE(a.in_flight(1)) << "the survivor confirms it";
  EXPECT_TRUE(a.log.tell("it is not in the pool any more")) << logs();
  EXPECT_TRUE(a.worker->peers().lost().empty());
}

// Requests that a session holds, has not taken, or has answered, of a node that died
// (coherence.messages-for-incarnation).
TEST_F(TcpPeerLinks, NothingOfAFormerIncarnationReachesTheNext) {
  PeerNode& b = join(kB);
  PeerNode& a = join(kA);
  for (uint32_t i : {1u, 2u, 3u, 4u}) a.ask(kB, i);
  PeerRequest taken[2];
  ASSERT_TRUE(comes(b, &taken[0]) && comes(b, &taken[1])) << logs();
  (void)grant(b, taken[0], 111);  // and the worker has not seen it
  a.is(MemberState::kDead);
  const uint64_t former = a.parts.incarnation;
  a.worker->end();
  PeerNode& again = start(kA);
  ASSERT_TRUE(until([&] { return again.worker->peers().reaches(NodeSet::of(kB)); })) << logs();
  EXPECT_EQ(grant(b, taken[1], 222), Messenger::kNowhere);
  again.publish();
  run_all();
  EXPECT_EQ(grant(b, taken[1], 222), Messenger::kNowhere) << "it asks with another incarnation";
  b.says->grant_complete(kA, uint8_t(former), 2);
  PeerRequest request;
  EXPECT_FALSE(take(b, &request)) << "what was not taken is gone";
  for (uint32_t i : {1u, 2u, 3u, 4u}) again.ask(kB, i);
  for (int i = 0; i < 4; i++) {
    ASSERT_TRUE(comes(b, &request)) << i << logs();
    EXPECT_EQ(request.incarnation, uint8_t(again.parts.incarnation));
    EXPECT_EQ(grant(b, request, 300 + request.slot), request.slot);
  }
  // The number of the request is the same, and that of the slot.
  EXPECT_EQ(taken[1].id, request.id);
  EXPECT_EQ(grant(b, taken[1], 222), Messenger::kNowhere);
  for (uint32_t i : {1u, 2u, 3u, 4u}) {
    ASSERT_TRUE(until([&] { return again.word(i, kB).is_reply(); })) << i << logs();
    EXPECT_EQ(value_at(again, i), 300 + i);
  }
  EXPECT_TRUE(agree()) << logs();
}

// The process was in the middle of its reply when the peer died, and came back: the new request waits for the entry.
TEST_F(TcpPeerLinks, ARequestWaitsForTheReplyToAFormerIncarnation) {
  PeerNode& b = join(kB);
  PeerNode& a = join(kA);
  a.ask(kB, 1);
  PeerRequest old, request;
  ASSERT_TRUE(comes(b, &old));
  std::atomic<uint64_t>& word = b.worker->boxes().entry(kA, 1).word;
  const EntryWord taken{word.load()};
  word = taken.as(EntryWord::State::kReplying).raw;
  a.is(MemberState::kDead);
  a.worker->end();
  PeerNode& again = join(kA);
  again.ask(kB, 1);
  run_all();
  EXPECT_FALSE(take(b, &request));
  EXPECT_EQ(word.load(), taken.as(EntryWord::State::kReplying).raw);
  memset(b.worker->boxes().page(kA, 1), 0xee, kPageSize);  // it goes on
  b.worker->boxes().entry(kA, 1).reply = ReplyKind::kGrantM;
  word = taken.as(EntryWord::State::kReplied).raw;
  b.worker->boxes().leave_reply(kA, 1);
  ASSERT_TRUE(comes(b, &request)) << logs();
  EXPECT_EQ(request.incarnation, uint8_t(again.parts.incarnation));
  EXPECT_TRUE(again.word(1, kB).is_taken());
  EXPECT_EQ(grant(b, request, 5), 1u);
  ASSERT_TRUE(until([&] { return again.word(1, kB).is_reply(); }));
  EXPECT_EQ(value_at(again, 1), 5u);
}

// The other way round: a node that asked it before it died, and asks it now.
TEST_F(TcpPeerLinks, ARequestToAFormerIncarnationIsNotSentToTheNext) {
  PeerNode& a = join(kA);
  PeerNode& b = join(kB);
  a.ask(kB, 1);
  b.is(MemberState::kDead);
  b.worker->end();
  PeerNode& again = join(kB);
  PeerRequest request;
  EXPECT_FALSE(take(again, &request));
  EXPECT_TRUE(a.word(1, kB).is_open() || a.word(1, kB).is_taken());
  a.ask(kB, 1);
  EXPECT_TRUE(comes(again, &request)) << logs();
}

// tcp.exactly-once
TEST_F(TcpPeerLinks, ThoughConnectionsBreakEachMessageComesOnce) {
  PeerNode& a = join(kA);
  const gcl_test::CuttingProxy proxy(
      directory.path() + "/" + gcl_test::PeerSockets::name(kA, a.parts.incarnation) + "p",
      directory.path() + "/" + gcl_test::PeerSockets::name(kA, a.parts.incarnation), 40'000, gcl_test::seed(7));
  sockets.suffix = "p";
  PeerNode& b = join(kB);
  constexpr uint32_t kSlots = 24;
  PeerNode* const of[2] = {&a, &b};
  std::vector<uint32_t> rounds[2] = {std::vector<uint32_t>(kSlots), std::vector<uint32_t>(kSlots)};
  uint64_t exchanges = 0;
  const uint64_t cuts = 40 * uint64_t(gcl_test::longer());
  ASSERT_TRUE(until([&] {
    for (int n = 0; n < 2; n++) {
      PeerNode &asks = *of[n], &answers = *of[!n];
      for (uint32_t i = 0; i < kSlots; i++) {
        const ReplyWord word = asks.word(i, answers.id());
        if (rounds[n][i] != 0 && (!word.is_reply() || asks.in_flight(i))) continue;
        if (rounds[n][i] != 0) {
          EXPECT_EQ(value_at(asks, i), rounds[n][i]);
          EXPECT_EQ(word.round(), uint16_t(rounds[n][i]));
          exchanges++;
        }
        asks.ask(answers.id(), i);
        rounds[n][i]++;
      }
      PeerRequest request;
      while (take(answers, &request)) {
        EXPECT_EQ(request.id, uint16_t(rounds[n][request.slot]));
        (void)grant(answers, request, request.id, true);
        answers.says->grant_complete(asks.id(), request.incarnation, request.slot);
      }
    }
    return proxy.cuts() >= cuts;
  })) << logs();
  EXPECT_GT(exchanges, cuts);
  EXPECT_TRUE(agree()) << logs();
}

// Two nodes that talk, and die at any moment, and come again; what sessions hold of a former incarnation they answer
// later.
class TcpPeersThatDie : public TcpPeers {
 protected:
  static constexpr uint32_t kSlots = 12;
  struct Taken {
    PeerRequest request;
    uint64_t by;  // the incarnation that took it
  };
  struct Side {
    PeerNode* node = nullptr;
    std::vector<uint32_t> waits = std::vector<uint32_t>(kSlots);  // round; 0: none
    std::vector<Taken> held, granted;
  };
  Side& other(const Side& of) { return &of == &sides[0] ? sides[1] : sides[0]; }
  static uint64_t value_of(const PeerRequest& request) { return uint64_t{request.incarnation} << 32 | request.id; }

  void ask(Side& side, uint32_t i) {
    PeerNode& node = *side.node;
    if (side.waits[i] != 0 || node.in_flight(i)) return;
    node.ask(other(side).node->id(), i);
    side.waits[i] = uint16_t(node.slot(i).serial.load());
  }
  void look(Side& side, uint32_t i) {
    if (side.waits[i] == 0) return;
    const ReplyWord word = side.node->word(i, other(side).node->id());
    if (!word.is_reply() || word.round() != side.waits[i]) return;
    EXPECT_EQ(value_at(*side.node, i), (side.node->parts.incarnation & 0xff) << 32 | side.waits[i]);
    side.waits[i] = 0;
    replies++;
  }
  void answer(Side& side, Taken taken) {
    const bool stale = taken.request.incarnation != uint8_t(other(side).node->parts.incarnation);
    const uint32_t where = grant(*side.node, taken.request, value_of(taken.request), true);
    EXPECT_EQ(where, stale ? Messenger::kNowhere : taken.request.slot);
    nowhere += stale;
    side.granted.push_back(taken);  // also a stale one's end may be said
  }
  // What sessions of the node held ends with it; of the other one they go on.
  void die(Side& side) {
    const NodeId id = side.node->id();
    side.node->is(MemberState::kDead);
    side.node->worker->end();
    Side& survivor = other(side);
    for (uint32_t i = 0; i < kSlots; i++)
      if (survivor.node->parts.in_flight[i].load() == in_flight_of(id)) survivor.node->parts.in_flight[i] = 0;
    survivor.waits.assign(kSlots, 0);
    side = {};
    side.node = &join(id);
    deaths++;
  }
  Side sides[2];
  uint64_t replies = 0, nowhere = 0, deaths = 0;
};

TEST_F(TcpPeersThatDie, NothingOfThemReachesTheNextIncarnation) {
  std::mt19937 random(gcl_test::seed(11));
  sides[0].node = &join(kA), sides[1].node = &join(kB);
  const auto any_of = [&](std::vector<Taken>& from) {
    std::swap(from[random() % from.size()], from.back());
    const Taken taken = from.back();
    from.pop_back();
    return taken;
  };
  for (int round = 0; round < gcl_test::by_one_thread(20'000) * gcl_test::longer(); round++) {
    Side& side = sides[random() % 2];
    const uint32_t i = uint32_t(random() % kSlots);
    PeerRequest request;
    switch (random() % 8) {
      case 0:
        ask(side, i);
        break;
      case 1:
        if (take(*side.node, &request)) side.held.push_back({request, side.node->parts.incarnation});
        break;
      case 2:
        if (!side.held.empty()) answer(side, any_of(side.held));
        break;
      case 3:
        if (side.granted.empty()) break;
        request = any_of(side.granted).request;
        side.node->says->grant_complete(NodeId{request.from}, request.incarnation, request.slot);
        break;
      case 4:
        look(side, i);
        break;
      default:
        side.node->worker->run_once(0);
    }
    if (random() % 600 == 0) die(side);
    ASSERT_TRUE(agree()) << logs();
  }
  printf("%lu replies, %lu nowhere, %lu deaths\n", replies, nowhere, deaths);
  EXPECT_GT(replies, 10 * deaths);
  EXPECT_GT(nowhere, 0u);
}

// A peer that is away for too long, and lives: nobody decides that here.
TEST_F(TcpPeerLinks, APeerWhoseLinkIsOverIsTold) {
  net::LinkTimes times;
  times.patience_ns = 50'000'000;
  PeerNode& a = join(kA, {.times = times});
  PeerNode& b = join(kB, {.times = times});
  a.ask(kB, 1), b.ask(kA, 2);
  PeerRequest request;
  ASSERT_TRUE(comes(a, &request));
  b.worker->end();
  EXPECT_TRUE(until([&] { return a.worker->peers().lost() == NodeSet::of(kB); })) << logs();
  EXPECT_FALSE(a.worker->peers().reaches(NodeSet::of(kB)));
  EXPECT_EQ(grant(a, request, 1), Messenger::kNowhere) << "its entry is free";
  a.wakes->wake(kB, 1, Wakeup::kNone);
  run_all();
  b.is(MemberState::kDead);
  run_all();
  EXPECT_TRUE(a.worker->peers().lost().empty());
}

// --- strangers with a key

class TcpPeerLiar : public TcpPeers {
 protected:
  void SetUp() override {
    a = &join(kA);
    dial(11);
  }
  // As an incarnation of node 1 that is in the node table.
  void dial(uint64_t start, bool in_table = true) {
    liar = std::make_unique<RawPeer>(net::Who::node(kB, start));
    liar->dial(net::Who::node(kA, a->parts.incarnation), sockets.address(kA, a->parts.incarnation));
    if (in_table) states.incarnation[kB.value] = start;
    states.change(kB, in_table ? MemberState::kLive : MemberState::kAbsent);
    states.next_incarnation = start + 1;
  }
  bool liar_until(const std::function<bool()>& condition) {
    return until([&] {
      liar->links->wait(0);
      return condition();
    });
  }
  void connect() {
    ASSERT_TRUE(liar_until([&] { return liar->link == nullptr || liar->link->connected(); })) << logs();
    ASSERT_NE(liar->link, nullptr) << liar->ended_because;
  }
  void say(uint16_t type, std::span<const std::byte> frame) {
    connect();
    ASSERT_TRUE(liar->link->send(type, frame).ok());
  }
  template <size_t bytes>
  void say(uint16_t type, const std::byte (&frame)[bytes]) {
    say(type, std::span<const std::byte>(frame));
  }
  void refused(const std::string& because) {
    ASSERT_TRUE(liar_until([&] { return liar->link == nullptr; })) << logs();
    EXPECT_TRUE(a->log.tell("ends the link to node 1")) << logs();
    EXPECT_TRUE(a->log.tell(because)) << logs();
    EXPECT_NE(liar->ended_because.find(because), std::string::npos) << liar->ended_because;
    EXPECT_TRUE(a->worker->peers().lost().has(kB));
  }
  // The request that the node sends with its slot.
  AskMessage asks(uint32_t slot, RequestKind kind) {
    connect();
    liar->frames.clear();
    a->ask(kB, slot, kind);
    EXPECT_TRUE(liar_until([&] { return !liar->frames.empty(); })) << logs();
    AskMessage message;
    Problem problem;
    EXPECT_TRUE(!liar->frames.empty() && decode(liar->frames[0].second, &message, &problem));
    return message;
  }
  void reply(const ReplyMessage& message, uint64_t value = 0) {
    std::byte head[kReplyBytes];
    encode(message, head);
    std::vector<std::byte> frame(head, head + kReplyBytes);
    if (carries_page(message.kind)) frame.insert(frame.end(), kPageSize, std::byte(value));
    say(kReplyFrame, frame);
  }
  PeerNode* a = nullptr;
  std::unique_ptr<RawPeer> liar;
};

TEST_F(TcpPeerLiar, AFrameOfAnotherType) {
  say(36, std::span<const std::byte>());
  refused("a frame of type 36");
}
TEST_F(TcpPeerLiar, ABatch) {
  say(1, std::span<const std::byte>());
  refused("a frame of type 1");
}
TEST_F(TcpPeerLiar, ARequestThatIsTooShort) {
  const std::byte frame[kAskBytes - 1] = {};
  say(kAskFrame, frame);
  refused("a request of another length");
}
TEST_F(TcpPeerLiar, ASecondRequestOfOneSlot) {
  std::byte frame[kAskBytes];
  encode(AskMessage{.serial = 1, .page = PeerNode::page_of(1), .slot = kPeerSlots - 1, .kind = RequestKind::kPeerRd},
         frame);
  say(kAskFrame, frame);
  PeerRequest request;
  ASSERT_TRUE(liar_until([&] { return take(*a, &request); })) << logs();
  encode(AskMessage{.serial = 2, .page = PeerNode::page_of(1), .slot = kPeerSlots - 1, .kind = RequestKind::kPeerRd},
         frame);
  say(kAskFrame, frame);
  refused("a second request of one slot");
  EXPECT_EQ(grant(*a, request, 1), Messenger::kNowhere);
}
TEST_F(TcpPeerLiar, AReplyToWhatWasNotAsked) {
  reply({.slot = 3, .round = 0, .kind = ReplyKind::kDropped});
  refused("a reply to what was not asked");
}
TEST_F(TcpPeerLiar, AReplyToAnotherRound) {
  const AskMessage message = asks(3, RequestKind::kPeerWr);
  reply({.slot = 3, .round = uint16_t(message.serial + 1), .kind = ReplyKind::kGrantM}, 7);
  refused("a reply to what was not asked");
  EXPECT_EQ(value_at(*a, 3), 0u);
  EXPECT_TRUE(a->word(3, kB).is_taken());
}
TEST_F(TcpPeerLiar, ASecondReply) {
  const AskMessage message = asks(3, RequestKind::kPeerRd);
  const ReplyMessage dropped{.slot = 3, .round = uint16_t(message.serial), .kind = ReplyKind::kDropped};
  reply(dropped);
  reply(dropped);
  refused("a reply to what was not asked");
}
TEST_F(TcpPeerLiar, AReplyToASlotThatThereIsNot) {
  reply({.slot = PeerNode::kSessions * kSlotsPerSession, .round = 1, .kind = ReplyKind::kDropped});
  refused("a reply to a slot that there is not");
}
TEST_F(TcpPeerLiar, APageForAnInvalidation) {
  const AskMessage message = asks(3, RequestKind::kPeerInv);
  reply({.slot = 3, .round = uint16_t(message.serial), .kind = ReplyKind::kGrantM}, 7);
  refused("a reply that such a request does not get");
  EXPECT_EQ(value_at(*a, 3), 0u);
}
TEST_F(TcpPeerLiar, AGrantThatIsNotInFlightIsComplete) {
  std::byte frame[kGrantCompleteBytes];
  encode(GrantCompleteMessage{5}, frame);
  a->parts.in_flight[5] = in_flight_of(kC);
  say(kGrantCompleteFrame, frame);
  refused("a grant's end for a line that it has not granted");
  EXPECT_TRUE(a->in_flight(5));
}
TEST_F(TcpPeerLiar, AGrantForALineThatThereIsNotIsComplete) {
  std::byte frame[kGrantCompleteBytes];
  encode(GrantCompleteMessage{PeerNode::kFrames}, frame);
  say(kGrantCompleteFrame, frame);
  refused("a grant's end for a line that there is not");
}
TEST_F(TcpPeerLiar, AWakeupOfNoEvent) {
  const std::byte frame[kWakeupBytes] = {std::byte{1}, {}, {}, {}, {}, {}, {}, {}, std::byte{kWakeupEvents}};
  say(kWakeupFrame, frame);
  refused("a wakeup of an event that there is not");
}
TEST_F(TcpPeerLiar, ARightReplyIsTaken) {
  const AskMessage message = asks(3, RequestKind::kPeerRd);
  EXPECT_EQ(message.page, PeerNode::page_of(3));
  EXPECT_EQ(message.line, 3u);
  reply({.slot = 3, .round = uint16_t(message.serial), .kind = ReplyKind::kGrantS, .in_flight = true}, 7);
  ASSERT_TRUE(liar_until([&] { return a->word(3, kB).is_reply(); })) << logs();
  EXPECT_EQ(value_at(*a, 3), 0x0707070707070707u);
  EXPECT_TRUE(a->in_flight(3));
  EXPECT_TRUE(agree());
}

// --- peers that have no link here

TEST_F(TcpPeerLiar, ANodeThatIsNotInTheNodeTableSaysNothing) {
  liar.reset();
  dial(12, false);
  std::byte frame[kAskBytes];
  encode(AskMessage{.serial = 1, .page = PeerNode::page_of(1), .slot = 1, .kind = RequestKind::kPeerRd}, frame);
  say(kAskFrame, frame);
  for (int i = 0; i < 20; i++) run_once(), liar->links->wait(0);
  PeerRequest request;
  EXPECT_FALSE(take(*a, &request));
}
TEST_F(TcpPeerLiar, AnOlderIncarnationIsSentAway) {
  connect();
  liar.reset();
  run_all();
  states.incarnation[kB.value] = 20;
  states.change(kB, MemberState::kLive);
  liar = std::make_unique<RawPeer>(net::Who::node(kB, 15));
  liar->dial(net::Who::node(kA, a->parts.incarnation), sockets.address(kA, a->parts.incarnation));
  ASSERT_TRUE(liar_until([&] { return liar->link == nullptr; })) << logs();
  EXPECT_NE(liar->ended_because.find("it is not in the pool any more"), std::string::npos) << liar->ended_because;
}
TEST_F(TcpPeerLiar, ANodeThatWasThereBeforeDoesNotBeginTheLink) {
  liar = std::make_unique<RawPeer>(net::Who::node(kC, 1));
  liar->dial(net::Who::node(kA, a->parts.incarnation), sockets.address(kA, a->parts.incarnation));
  ASSERT_TRUE(liar_until([&] { return liar->link == nullptr; })) << logs();
  EXPECT_NE(liar->ended_because.find("the node that joins later begins the link"), std::string::npos);
}
TEST_F(TcpPeerLiar, AToolIsNoPeer) {
  liar = std::make_unique<RawPeer>(net::Who::tool(1));
  liar->dial(net::Who::node(kA, a->parts.incarnation), sockets.address(kA, a->parts.incarnation));
  ASSERT_TRUE(liar_until([&] { return liar->link == nullptr; })) << logs();
  EXPECT_NE(liar->ended_because.find("this is no node"), std::string::npos) << liar->ended_because;
}

}  // namespace
}  // namespace coherence::tcp
