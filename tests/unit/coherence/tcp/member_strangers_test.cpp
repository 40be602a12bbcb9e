// Which peers may write to the memory of a pool with members, and what memory node 0 makes of frames that are none.
#include "members.hpp"

namespace coherence::tcp {
namespace {

class TcpWriters : public MemberServerTest {
 protected:
  // A batch that adds to a word, adds nothing to it, or reads it.
  enum Does { kReads, kAdds, kAddsNothing };
  static std::vector<std::byte> batch(Does does) {
    Batch one(kZero);
    if (does == kReads) one.load(PoolAddress::at(kZero, kPoolHeaderBytes + 8192));
    if (does != kReads) one.faa(PoolAddress::at(kZero, kPoolHeaderBytes + 8192), does == kAdds ? 1 : 0);
    std::vector<std::byte> frame(request_bytes({&one.op(0), 1}));
    encode_request(kZero, 0, {&one.op(0), 1}, frame.data());
    return frame;
  }
  bool runs(MemberPeer& peer, Does does = kAdds) {
    const int before = peer.others;
    EXPECT_TRUE(peer.send(kRequestFrame, batch(does)));
    EXPECT_TRUE(until([&] { return peer.over() || peer.others > before; }));
    return !peer.over();
  }
};

TEST_F(TcpWriters, AnIncarnationThatHasLeftWritesNothing) {
  MemberPeer& left = join(0);
  EXPECT_TRUE(runs(left));
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  EXPECT_EQ(call(by, {.call = Call::kWithdraw, .node = 0, .incarnation = 1}).error, Errc::kOk);
  EXPECT_FALSE(runs(left));
  EXPECT_TRUE(log.tell("node 0 (start 1), which sent a batch of an incarnation that is not in the pool")) << log.all;
}

// A process that was stopped, and goes on when its node has died.
TEST_F(TcpWriters, ADeadIncarnationsLateBatchIsNotCarriedOut) {
  times = {.patience_ns = 1'000'000'000, .silence_ns = 300'000'000};
  make({});
  MemberPeer &stopped = join(0), &survivor = join(1);
  EXPECT_TRUE(runs(stopped));
  stopped.stands_still = true;
  EXPECT_TRUE(until([&] { return survivor.state(0) == MemberState::kDead; }));
  const uint64_t word = *memory->load(PoolAddress::at(kZero, kPoolHeaderBytes + 8192));
  stopped.stands_still = false;
  EXPECT_FALSE(runs(stopped));
  EXPECT_EQ(*memory->load(PoolAddress::at(kZero, kPoolHeaderBytes + 8192)), word);
  EXPECT_TRUE(runs(survivor));
}

TEST_F(TcpWriters, ANodeThatIsNotLetInGetsNoLink) {
  MemberPeer& stranger = node(3, 17);
  EXPECT_TRUE(stranger.over());
  EXPECT_NE(stranger.raw.ended_because.find("incarnation 17 of node 3 is not in the pool"), std::string::npos)
      << stranger.raw.ended_because;
  (void)join(0);
  MemberPeer& newer = node(1, 2);
  EXPECT_TRUE(newer.over());
  EXPECT_EQ(state(0), MemberState::kLive);
}

// tcp.tools-look
TEST_F(TcpWriters, AToolWritesOnlyWhereNobodyWorks) {
  MemberPeer& alone = tool();
  EXPECT_TRUE(runs(alone, kReads));
  EXPECT_TRUE(runs(alone, kAddsNothing));
  EXPECT_FALSE(runs(alone)) << "it has not begun a change";
  MemberPeer& repairs = tool();
  EXPECT_EQ(call(repairs, {.call = Call::kBeginChange}).error, Errc::kOk);
  EXPECT_TRUE(runs(repairs));
  EXPECT_EQ(call(repairs, {.call = Call::kEndChange}).error, Errc::kOk);
  (void)join(0);
  MemberPeer& late = tool();
  EXPECT_EQ(call(late, {.call = Call::kBeginChange}).error, Errc::kOk);
  EXPECT_TRUE(runs(late, kReads));
  EXPECT_TRUE(runs(late, kAddsNothing));
  EXPECT_FALSE(runs(late));
  EXPECT_TRUE(log.tell("a batch that writes, though nodes are in the pool")) << log.all;
}

// --- tcp.nothing-believed

class TcpMemberLiars : public MemberServerTest {
 protected:
  void refused(MemberPeer& peer, uint16_t type, std::span<const std::byte> frame, const std::string& because) {
    ASSERT_TRUE(peer.send(type, frame));
    EXPECT_TRUE(until([&] { return peer.over(); })) << because;
    EXPECT_TRUE(log.tell(because)) << log.all;
    log.all.clear();
  }
  void refused(CallFrame call, const std::string& because) { refused(tool(), kCallFrame, bytes_of(call), because); }
};

TEST_F(TcpMemberLiars, CallsThatAreNone) {
  refused(tool(), kCallFrame, {}, "a call of another length");
  refused(tool(), kSayingsFrame, {}, "a frame of type 19");
  refused(tool(), kTableFrame, {}, "a frame of type 18");
  refused({.call = Call(9)}, "a call that there is not");
  refused({.call = Call::kHeader, .node = 1}, "a call with more than it needs");
  refused({.call = Call::kReserve, .node = 58}, "a call about a node that there cannot be");
  refused({.call = Call::kBeginChange, .tries = 2}, "a call that neither waits nor tries");
  CallFrame endless = publish(0, 1);
  memset(endless.listens_at, 'x', sizeof endless.listens_at);
  refused(endless, "a call with an address that does not end");
}

TEST_F(TcpMemberLiars, CallsOutOfTheirPlace) {
  refused({.call = Call::kReserve}, "a change that it has not begun");
  MemberPeer& twice = tool();
  EXPECT_EQ(call(twice, {.call = Call::kBeginChange}).error, Errc::kOk);
  refused(twice, kCallFrame, bytes_of(CallFrame{.call = Call::kBeginChange}), "a change inside a change");
  MemberPeer& invents = tool();
  EXPECT_EQ(call(invents, {.call = Call::kBeginChange}).error, Errc::kOk);
  refused(invents, kCallFrame, bytes_of(publish(0, 1)), "a node that it has not reserved");
  (void)join(0);
  MemberPeer& closes = tool();
  EXPECT_EQ(call(closes, {.call = Call::kBeginChange}).error, Errc::kOk);
  refused(closes, kCallFrame, bytes_of(CallFrame{.call = Call::kClose}), "to be closed in which nodes are");
  MemberPeer &holds = tool(), &hasty = tool();
  EXPECT_EQ(call(holds, {.call = Call::kBeginChange}).error, Errc::kOk);
  ask(hasty, {.call = Call::kBeginChange});
  refused(hasty, kCallFrame, bytes_of(CallFrame{}), "a call before the answer to the last one");
}

TEST_F(TcpMemberLiars, SayingsThatAreNone) {
  SayingsRecord sayings = {};
  const auto from_a_node = [&](std::span<const std::byte> frame, const std::string& because) {
    MemberPeer& by = tool();
    EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
    MemberPeer& liar = node(3, call(by, {.call = Call::kReserve, .node = 3}).value);
    refused(liar, kSayingsFrame, frame, because);
    kill(liar);
    kill(by);
    EXPECT_TRUE(until([&] { return server->figures().links == 0; }));
  };
  from_a_node(bytes_of(sayings).first(8), "sayings of another length");
  sayings.leaves = 2;
  from_a_node(bytes_of(sayings), "sayings of another format");
  sayings.leaves = 0;
  sayings.said[0][4] = 1;
  from_a_node(bytes_of(sayings), "sayings of node 4, which the pool does not have");
  sayings = {};
  memset(sayings.fence_reason, 'x', sizeof sayings.fence_reason);
  from_a_node(bytes_of(sayings), "sayings of another format");
}

}  // namespace
}  // namespace coherence::tcp
