// What nodes say to each other over links: requests, replies, grants that are complete, wakeups.
#include "coherence/transport/tcp/message/tcp_messenger.hpp"

#include <random>
#include <thread>

#include "peers.hpp"
#include "tests/support/longer.hpp"

namespace coherence::tcp {
namespace {

TEST_F(TcpPeers, ARequestSaysWhatItsSlotAsks) {
  PeerNode &a = join(kA), &b = join(kB);
  a.ask(kB, 5, RequestKind::kPeerJoin);
  PeerRequest request;
  PageId page;
  ASSERT_TRUE(comes(b, &request, &page)) << logs();
  EXPECT_EQ(request, (PeerRequest{.from = kA.value,
                                  .kind = RequestKind::kPeerJoin,
                                  .priority = 5,
                                  .incarnation = uint8_t(a.parts.incarnation),
                                  .slot = 5,
                                  .id = 1}));
  EXPECT_EQ(page, PeerNode::page_of(5));
  EXPECT_TRUE(a.word(5, kB).is_taken());
  a.says->ask(kB, 5, page);  // the same once more
  run_all();
  EXPECT_FALSE(take(b, &request));
  EXPECT_TRUE(agree()) << logs();
}

TEST_F(TcpPeers, AReplyBringsItsPageAndWakesItsSession) {
  PeerNode &a = join(kA), &b = join(kB);
  for (uint64_t round = 1; round <= 100; round++) {
    const uint32_t woken = a.slot(7).wakeup.load();
    a.ask(kB, 7);
    PeerRequest request;
    ASSERT_TRUE(comes(b, &request));
    EXPECT_EQ(grant(b, request, round), 7u);
    ASSERT_TRUE(until([&] { return a.word(7, kB).is_reply(); })) << logs();
    EXPECT_EQ(a.word(7, kB).raw, ReplyWord::of(uint16_t(round), ReplyKind::kGrantM).raw);
    EXPECT_EQ(value_at(a, 7), round);
    EXPECT_EQ(a.slot(7).wakeup.load(), woken + 1);
    EXPECT_FALSE(a.in_flight(7));
  }
  EXPECT_EQ(b.counters.get(Counter::kGrantMSent), 100u);
}

TEST_F(TcpPeers, AReplyWithoutAPageTellsWhatItTells) {
  PeerNode &a = join(kA), &b = join(kB);
  const Reply replies[] = {{.kind = ReplyKind::kHeld, .more = (uint64_t{1} << 40) - 1},
                           {.kind = ReplyKind::kDropped, .more = 3},
                           {.kind = ReplyKind::kDone}};
  for (const Reply& reply : replies) {
    a.ask(kB, 1);
    PeerRequest request;
    ASSERT_TRUE(comes(b, &request));
    EXPECT_EQ(b.says->reply(request, reply), 1u);
    ASSERT_TRUE(until([&] { return a.word(1, kB).is_reply(); })) << logs();
    EXPECT_EQ(a.word(1, kB).raw, ReplyWord::of(request.id, reply.kind, reply.more).raw);
  }
}

TEST_F(TcpPeers, AReplyToASlotWhoseSessionLeftRingsTheMessageWorker) {
  PeerNode &a = join(kA), &b = join(kB);
  a.slot(1).state = SlotState::kAbandoned;
  a.parts.arena->sleeping = 1;
  a.ask(kB, 1);
  PeerRequest request;
  ASSERT_TRUE(comes(b, &request));
  const uint32_t rung = a.parts.arena->wakeup;
  (void)grant(b, request, 1);
  ASSERT_TRUE(until([&] { return a.word(1, kB).is_reply(); }));
  EXPECT_EQ(a.parts.arena->wakeup, rung + 1);
}

TEST_F(TcpPeers, ASlotMayAskSeveralAtOnce) {
  PeerNode &a = join(kA), &b = join(kB), &c = join(kC);
  a.ask(kB, 1);
  a.slot(1).reply[kC.value].store(ReplyWord::asked(1, c.parts.incarnation).raw);
  a.says->ask(kC, 1, PeerNode::page_of(1));
  PeerRequest of_b, of_c;
  ASSERT_TRUE(comes(b, &of_b) && comes(c, &of_c)) << logs();
  EXPECT_EQ(of_b, of_c);
  (void)b.says->reply(of_b, {.kind = ReplyKind::kDropped});
  (void)c.says->reply(of_c, {.kind = ReplyKind::kHeld, .more = 4});
  EXPECT_TRUE(until([&] { return a.word(1, kB).is_reply() && a.word(1, kC).is_reply(); }));
  EXPECT_EQ(a.word(1, kC).held_by(), 4u);
}

// So many more bytes than a window has; the worker is not asked to wait for any.
TEST_F(TcpPeers, AllSlotsAskAtOnceThroughASmallWindow) {
  constexpr uint32_t kWindow = 1 << 16;
  PeerNode &a = join(kA, {.window = kWindow}), &b = join(kB, {.window = kWindow});
  constexpr uint32_t kSlots = PeerNode::kSessions * kSlotsPerSession;
  for (uint32_t i = 0; i < kSlots; i++) a.ask(kB, i);
  std::vector<bool> taken(kSlots);
  uint32_t count = 0;
  ASSERT_TRUE(until([&] {
    PeerRequest request;
    while (take(b, &request)) {
      EXPECT_FALSE(taken[request.slot]) << "taken twice";
      taken[request.slot] = true;
      count++;
      EXPECT_EQ(grant(b, request, 1000 + request.slot, true), uint32_t(request.slot));
      b.says->grant_complete(kA, request.incarnation, request.slot);
    }
    return count == kSlots;
  })) << logs();
  for (uint32_t i = 0; i < kSlots; i++) {
    ASSERT_TRUE(until([&] { return a.word(i, kB).is_reply() && !a.in_flight(i); })) << i << logs();
    EXPECT_EQ(value_at(a, i), 1000 + i);
  }
  EXPECT_TRUE(agree()) << logs();
}

// Neither grant_complete() before its reply, nor one that is lost; whenever a worker looks.
TEST_F(TcpPeers, AGrantIsInFlightUntilItIsSaidToBeComplete) {
  std::mt19937 random(gcl_test::seed(3));
  PeerNode &a = join(kA, {.window = 1 << 15}), &b = join(kB, {.window = 1 << 15});
  constexpr uint32_t kSlots = 64;
  std::vector<PeerRequest> granted;
  std::vector<uint32_t> asked(kSlots);  // how often
  uint64_t complete = 0;
  const int rounds = 4000 * gcl_test::longer();
  for (int round = 0; round < rounds || !granted.empty(); round++) {
    const uint32_t i = uint32_t(random() % kSlots);
    switch (round < rounds ? random() % 5 : 3 + random() % 2) {
      case 0:
        if (asked[i] != 0 && (!a.word(i, kB).is_reply() || a.in_flight(i))) break;
        a.ask(kB, i);
        asked[i]++;
        break;
      case 1: {
        PeerRequest request;
        if (!take(b, &request)) break;
        EXPECT_EQ(grant(b, request, asked[request.slot], true), uint32_t(request.slot));
        granted.push_back(request);
        break;
      }
      case 2:
        run_once();
        break;
      case 3:
        if (granted.empty()) break;
        std::swap(granted[random() % granted.size()], granted.back());
        b.says->grant_complete(kA, granted.back().incarnation, granted.back().slot);
        granted.pop_back();
        complete++;
        break;
      default:
        (random() % 2 ? a : b).worker->run_once(0);
    }
    ASSERT_TRUE(agree()) << "a grant's end came before the grant: " << logs();
  }
  EXPECT_GT(complete, uint64_t(rounds) / 50);
  ASSERT_TRUE(until([&] {
    PeerRequest request;
    if (take(b, &request)) {
      (void)grant(b, request, asked[request.slot], true);
      b.says->grant_complete(kA, request.incarnation, request.slot);
    }
    for (uint32_t i = 0; i < kSlots; i++)
      if (asked[i] != 0 && (!a.word(i, kB).is_reply() || a.in_flight(i))) return false;
    return true;
  })) << logs();
  for (uint32_t i = 0; i < kSlots; i++)
    if (asked[i] != 0) {
      EXPECT_EQ(value_at(a, i), asked[i]);
      EXPECT_EQ(a.word(i, kB).round(), asked[i]);
    }
}

// The ring has room for so many only; the worker takes them though it cannot send any.
TEST_F(TcpPeers, ASessionWithMoreCompleteGrantsThanRoomWaitsForTheWorkerAlone) {
  PeerNode &a = join(kA), &b = join(kB);
  a.ask(kB, 1);
  PeerRequest request;
  ASSERT_TRUE(comes(b, &request));
  (void)grant(b, request, 1, true);
  ASSERT_TRUE(until([&] { return a.in_flight(1); }));
  a.worker.reset();  // away, for ever
  std::atomic<bool> done{false};
  std::thread session([&] {
    for (uint32_t i = 0; i < 4 * PeerBoxes::kGrantsMax; i++) b.says->grant_complete(kA, request.incarnation, 1);
    done = true;
  });
  EXPECT_TRUE(gcl_test::eventually([&] {
    b.worker->run_once(0);
    return done.load();
  }));
  session.join();
}

TEST_F(TcpPeers, AWakeupEndsSleepsOfItsEventAndOfTheOther) {
  PeerNode &a = join(kA), &b = join(kB);
  WakeupEvent* const event = b.parts.arena->event;
  a.wakes->wake(kB, 3, Wakeup::kNone);
  ASSERT_TRUE(until([&] { return event[3].count == 1; })) << logs();
  a.wakes->wake(kB, 3, 9);
  ASSERT_TRUE(until([&] { return event[3].count == 2; }));
  EXPECT_EQ(event[9].count, 1u) << "nobody attends to event 3";
  event[3].attended = 1;
  a.wakes->wake(kB, 3, 9);
  ASSERT_TRUE(until([&] { return event[3].count == 3; }));
  EXPECT_EQ(event[9].count, 1u);
  for (int i = 0; i < 10; i++) a.wakes->wake(kB, 31, 0), a.wakes->wake(kB, 0, 31);
  ASSERT_TRUE(until([&] { return event[31].count > 0 && event[0].count > 0; }));
  run_all();
  EXPECT_LE(event[31].count, 4u) << "several that are not sent yet are one";
  b.wakes->wake(kB, 4, Wakeup::kNone);
  EXPECT_EQ(event[4].count, 1u);
  a.wakes->wake(kC, 4, 5);
  run_all();
  EXPECT_TRUE(agree()) << logs();
}

// wakeup.look-again, here of messages: a wakeup comes behind what was said before it.
TEST_F(TcpPeers, AWokenNodeFindsWhatWasSaidBefore) {
  PeerNode &a = join(kA, {.window = 1 << 15}), &b = join(kB, {.window = 1 << 15});
  uint32_t said = 0;
  for (uint32_t i = 0; i < 300; i++) {
    a.ask(kB, i);
    PeerRequest request;
    for (int round = 0; round < 6; round++) {
      b.worker->run_once(0), a.worker->run_once(0);
      while (take(b, &request)) {
        (void)grant(b, request, ++said);
        b.wakes->wake(kA, 2, Wakeup::kNone);
        if (request.slot % 3 != 0) continue;
        for (int more = 0; more < 4; more++) b.worker->run_once(0);
      }
    }
  }
  ASSERT_TRUE(until([&] {
    const uint32_t before = a.parts.arena->event[2].count;
    uint32_t replies = 0;
    for (uint32_t i = 0; i < 300; i++) replies += a.word(i, kB).is_reply();
    EXPECT_TRUE(before <= replies);
    PeerRequest request;
    while (take(b, &request)) {
      (void)grant(b, request, ++said);
      b.wakes->wake(kA, 2, Wakeup::kNone);
    }
    return replies == 300;
  })) << logs();
}

TEST_F(TcpPeers, FlushReturnsWhenThePeerHasAll) {
  PeerNode &a = join(kA), &b = join(kB);
  for (uint32_t i = 0; i < 20; i++) a.ask(kB, i);
  std::atomic<bool> flushed{false};
  std::thread session([&] {
    a.says->flush();
    flushed = true;
  });
  ASSERT_TRUE(until([&] { return flushed.load(); }));
  session.join();
  b.says->receive(*this);
  EXPECT_EQ(received.size(), 20u);
}

TEST_F(TcpPeers, SeveralFlushAtOnce) {
  PeerNode& a = join(kA);
  join(kB);
  std::atomic<int> flushed{0};
  std::vector<std::thread> sessions;
  for (int s = 0; s < 4; s++)
    sessions.emplace_back([&, s] {
      for (int i = 0; i < 5; i++) {
        a.wakes->wake(kB, uint16_t(s), Wakeup::kNone);
        a.says->flush();
        flushed++;
      }
    });
  EXPECT_TRUE(until([&] { return flushed.load() == 20; }));
  for (auto& session : sessions) session.join();
}

TEST_F(TcpPeers, FlushDoesNotWaitForWhatNeverArrives) {
  PeerNode &a = join(kA), &b = join(kB);
  b.worker.reset();
  a.ask(kB, 1);
  std::atomic<bool> flushed{false};
  std::thread session([&] {
    a.says->flush();
    flushed = true;
  });
  for (int i = 0; i < 20; i++) a.worker->run_once(1);
  b.is(MemberState::kDead);
  EXPECT_TRUE(until([&] { return flushed.load(); }));
  session.join();
  a.worker->end();
  a.says->flush();  // nobody would send it
}

}  // namespace
}  // namespace coherence::tcp
