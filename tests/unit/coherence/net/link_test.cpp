// A link: what arrives, in which order, and what ends it.  No sockets.
#include <gtest/gtest.h>

#include "link_pair.hpp"

namespace gcl_test {

class LinkTest : public ::testing::Test {
 protected:
  // What b makes of a frame with such a header behind what is right.
  void forge(FrameHeader header) {
    if (!pair.up) pair.connect();
    pair.deliver_all();
    const auto* const bytes = reinterpret_cast<const std::byte*>(&header);
    pair.to_b.insert(pair.to_b.end(), bytes, bytes + sizeof header);
    pair.to_b.resize(pair.to_b.size() + ((header.length & 0xffff) + 7) / 8 * 8);
    pair.arrive_at_b(LinkPair::kAll);
  }
  LinkPair pair;
};

TEST_F(LinkTest, FramesArriveInOrderBothWays) {
  EXPECT_TRUE(pair.a->send(1, bytes_of("before there is a connection")).ok());
  pair.connect();
  pair.deliver_all();
  EXPECT_TRUE(pair.a->connected());
  EXPECT_TRUE(pair.b->connected());
  EXPECT_EQ(pair.got_a.greetings, 1);
  const std::string left = "in ", right = "pieces";
  const Link::Piece pieces[] = {bytes_of(left), {}, bytes_of(right)};
  EXPECT_TRUE(pair.a->send(kTypeMax, pieces).ok());
  EXPECT_TRUE(pair.b->send(7, bytes_of("")).ok());
  pair.deliver_all();
  EXPECT_EQ(pair.got_b.texts, (std::vector<std::string>{"before there is a connection", "in pieces"}));
  EXPECT_EQ(pair.got_b.types, (std::vector<uint16_t>{1, kTypeMax}));
  EXPECT_EQ(pair.got_a.texts, std::vector<std::string>{""});
  EXPECT_EQ(pair.a->peer(), Who::memory_node(MemoryNodeId{1}, 1000));
  EXPECT_EQ(pair.a->peer_window(), 64u * 1024);
}

TEST_F(LinkTest, WhatIsReceivedIsAcknowledgedAloneAfterAWhile) {
  pair.connect();
  EXPECT_TRUE(pair.a->send(1, bytes_of("x")).ok());
  pair.deliver_all();
  EXPECT_FALSE(pair.a->all_acknowledged());
  EXPECT_FALSE(pair.b->has_output());
  EXPECT_EQ(pair.b->deadline(), pair.now + LinkTimes().acknowledge_ns);
  pair.pass(LinkTimes().acknowledge_ns);
  pair.deliver_all();
  EXPECT_TRUE(pair.a->all_acknowledged());
}

TEST_F(LinkTest, AnAnswerAcknowledges) {
  pair.connect();
  EXPECT_TRUE(pair.a->send(1, bytes_of("x")).ok());
  pair.got_b.then = [](Link& link) { EXPECT_TRUE(link.send(2, bytes_of("y")).ok()); };
  pair.deliver_all();
  EXPECT_TRUE(pair.a->all_acknowledged());
  EXPECT_EQ(pair.got_a.texts, std::vector<std::string>{"y"});
  EXPECT_GT(pair.b->deadline(), pair.now + LinkTimes().acknowledge_ns) << "nothing is owed";
}

TEST_F(LinkTest, AFullWindowTakesNoMoreUntilItIsFreed) {
  const std::string text(1000, 'w');
  int taken = 0;
  while (pair.a->send(1, bytes_of(text)).ok()) taken++;
  EXPECT_EQ(taken, int(64 * 1024 / frame_bytes(1000)));
  EXPECT_EQ(pair.a->send(1, bytes_of(text)).error(), Errc::kNoSpace);
  EXPECT_FALSE(pair.a->room_for(1000));
  EXPECT_FALSE(pair.a->take_room_made());
  pair.connect();
  pair.deliver_all();  // the other side acknowledges a part at once: time plays no role
  EXPECT_TRUE(pair.a->take_room_made());
  EXPECT_FALSE(pair.a->take_room_made());
  EXPECT_TRUE(pair.a->send(1, bytes_of(text)).ok());
  EXPECT_EQ(pair.got_b.texts.size(), size_t(taken));
}

TEST_F(LinkTest, WhatIsTooLargeIsRefused) {
  EXPECT_EQ(pair.a->send(1, bytes_of(std::string(64 * 1024, 'x'))).error(), Errc::kTooLarge);
  EXPECT_EQ(pair.a->send(1, bytes_of(std::string(kPayloadMax + 1, 'x'))).error(), Errc::kTooLarge);
}

TEST_F(LinkTest, TheLargestFrameArrives) {
  LinkPair::Settings settings;
  settings.window = 4 << 20;
  LinkPair large(settings);
  large.connect();
  std::vector<std::string> sent;
  for (int i = 0; i < 3; i++) {
    sent.emplace_back(kPayloadMax - size_t(i), char('a' + i));
    EXPECT_TRUE(large.a->send(1, bytes_of(sent.back())).ok());
  }
  large.send(*large.a, LinkPair::kAll);
  while (large.arrive_at_b(20'000) > 0) large.deliver_all();
  EXPECT_TRUE(large.got_b.texts == sent);
}

// --- what ends a link

TEST_F(LinkTest, PatienceEnds) {
  pair.connect();
  pair.deliver_all();
  pair.cut();
  pair.pass(LinkTimes().patience_ns - 1);
  EXPECT_FALSE(pair.a->over());
  pair.pass(1);
  EXPECT_EQ(pair.a->ending(), Ending::kPatience);
  EXPECT_EQ(pair.b->ending(), Ending::kPatience);
  EXPECT_STREQ(pair.a->reason(), "no connection with memory node 1 (start 1000) for 60.0 s: cut");
  EXPECT_EQ(pair.a->send(1, bytes_of("x")).error(), Errc::kNotFound);
}

TEST_F(LinkTest, ConnectionsThatNeverGreetDoNotMakePatienceLonger) {
  for (int i = 0; i < 60; i++) {
    pair.a->attach(pair.now);
    pair.pass(LinkPair::kSecond);
    if (pair.a->over()) break;
    pair.a->detach("no answer", pair.now);
  }
  EXPECT_EQ(pair.a->ending(), Ending::kPatience);
}

// A path that the greeting passes, and nothing that is longer.
TEST_F(LinkTest, ConnectionsThatOnlyGreetDoNotMakePatienceLonger) {
  pair.connect();
  pair.deliver_all();
  EXPECT_TRUE(pair.a->send(1, bytes_of("a long one")).ok());
  const uint64_t began = pair.now;
  pair.cut();
  while (!pair.b->over() && pair.now < began + 2 * LinkTimes().patience_ns) {
    pair.connect();
    pair.send(*pair.a, kHelloBytes);
    pair.arrive_at_b(LinkPair::kAll);
    pair.send(*pair.b, kWelcomeBytes);
    pair.arrive_at_a(LinkPair::kAll);
    ASSERT_TRUE(pair.a->connected() && pair.b->connected());
    pair.pass(LinkTimes().silence_ns);
    pair.cut();
    pair.pass(1);
  }
  EXPECT_EQ(pair.b->ending(), Ending::kPatience);
  EXPECT_LE(pair.now - began, LinkTimes().patience_ns + LinkTimes().silence_ns + LinkPair::kSecond);
}

TEST_F(LinkTest, ASilentPeerIsAskedAndThenItsConnectionIsGivenUp) {
  pair.connect();
  pair.deliver_all();
  const uint64_t silence = LinkTimes().silence_ns;
  pair.pass(silence / 3 + 1);
  EXPECT_TRUE(pair.a->has_output());
  pair.deliver_all();  // asked, and answered
  pair.pass(silence - 1);
  EXPECT_TRUE(pair.a->connected());
  pair.pass(1);
  EXPECT_FALSE(pair.a->attached());
  EXPECT_FALSE(pair.a->over());
  EXPECT_STREQ(pair.a->reason(), "nothing was heard of it for 10.0 s");
}

TEST_F(LinkTest, TheOtherSideIsToldWhyItEnded) {
  pair.connect();
  pair.deliver_all();
  EXPECT_TRUE(pair.a->send(1, bytes_of("half of it is under way")).ok());
  EXPECT_EQ(pair.send(*pair.a, 30), 30u);
  pair.a->end("enough \x1b[31m");
  EXPECT_EQ(pair.a->ending(), Ending::kEndedHere);
  pair.deliver_all();
  EXPECT_EQ(pair.got_b.texts.size(), 1u) << "a frame that was begun is ended first";
  EXPECT_EQ(pair.b->ending(), Ending::kEndedByPeer);
  EXPECT_STREQ(pair.b->reason(), "node 3 (start 17) ended the link: enough \\x1b[31m");
  EXPECT_FALSE(pair.b->has_output());
}

TEST_F(LinkTest, TheOtherSideIsToldEvenBeforeItHasAnswered) {
  pair.connect();
  pair.send(*pair.a, kHelloBytes - 1);
  pair.a->end("never mind");
  pair.send(*pair.a, LinkPair::kAll);
  pair.arrive_at_b(LinkPair::kAll);
  EXPECT_EQ(pair.b->ending(), Ending::kEndedByPeer);
}

TEST_F(LinkTest, AUserMayEndItWhileAFrameIsDelivered) {
  pair.connect();
  EXPECT_TRUE(pair.a->send(1, bytes_of("one")).ok());
  EXPECT_TRUE(pair.a->send(1, bytes_of("two")).ok());
  pair.got_b.then = [](Link& link) { link.end("no more"); };
  pair.deliver_all();
  EXPECT_EQ(pair.got_b.texts.size(), 1u);
  EXPECT_EQ(pair.a->ending(), Ending::kEndedByPeer);
}

TEST_F(LinkTest, AFrameOfNoKnownTypeEndsIt) {
  forge({0, 0xff77, 0, 0, 0});
  EXPECT_EQ(pair.b->ending(), Ending::kBroken);
  EXPECT_STREQ(pair.b->reason(), "node 3 (start 17) broke the format: a frame of type 65399, which is none");
  pair.deliver_all();
  EXPECT_EQ(pair.a->ending(), Ending::kEndedByPeer) << "and the other side hears why";
}

TEST_F(LinkTest, ALengthIsRefusedBeforeItsBytesCome) {
  forge({kPayloadMax + 1, 1, 0, 1, 0});
  EXPECT_EQ(pair.b->ending(), Ending::kBroken);
}

TEST_F(LinkTest, AGapInTheNumbersEndsIt) {
  forge({0, 1, 0, 2, 0});
  EXPECT_STREQ(pair.b->reason(), "node 3 (start 17) broke the format: frame 2 follows frame 0");
}

TEST_F(LinkTest, AFrameWithoutANumberEndsIt) {
  forge({0, 1, 0, 0, 0});
  EXPECT_EQ(pair.b->ending(), Ending::kBroken);
}

TEST_F(LinkTest, AnAcknowledgementOfWhatWasNotSentEndsIt) {
  forge({0, kAckFrame, 0, 0, 1});
  EXPECT_STREQ(pair.b->reason(), "node 3 (start 17) broke the format: it acknowledges frame 1, which was not sent");
}

TEST_F(LinkTest, ASecondCopyOfAFrameIsDropped) {
  pair.connect();
  EXPECT_TRUE(pair.a->send(5, bytes_of("only once")).ok());
  pair.deliver_all();
  forge({0, 5, 0, 1, 0});  // its number again
  EXPECT_FALSE(pair.b->over());
  EXPECT_EQ(pair.got_b.texts, std::vector<std::string>{"only once"});
  EXPECT_TRUE(pair.b->has_output()) << "its sender is told";
}

}  // namespace gcl_test
