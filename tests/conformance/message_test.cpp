// What every Messenger does: a request is taken once, by the incarnation that it is for; a reply lands with its page,
// or nowhere; after flush() nothing is on its way (coherence.request-taken-once, coherence.messages-for-incarnation).
#include <string>
#include <utility>

#include "nodes.hpp"
#include "tests/support/eventually.hpp"

namespace conformance {

using gcl_test::eventually;

class MessengerContract : public NodesContract {};

INSTANTIATE_TEST_SUITE_P(Transport, MessengerContract, testing::ValuesIn(messenger_kinds()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(MessengerContract, ARequestComesAndIsTakenOnce) {
  ask(1);
  ASSERT_TRUE(comes(kAsked));
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(received_[0], std::pair(kAsks, kSlot));
  PeerRequest request, again;
  ASSERT_TRUE(take(&request));
  EXPECT_EQ(request.from, kAsks.value);
  EXPECT_EQ(request.kind, RequestKind::kPeerRd);
  EXPECT_FALSE(take(&again));
  EXPECT_TRUE(answer().is_taken()) << "the slot stays as it is until the reply";
}

TEST_P(MessengerContract, AReplyIsThereWithItsPage) {
  for (uint64_t round = 1; round <= 50; round++) {
    ask(round);
    ASSERT_TRUE(comes(kAsked));
    PeerRequest request;
    ASSERT_TRUE(take(&request));
    EXPECT_EQ(grant(request, round), kLine);
    ASSERT_TRUE(eventually([&] { return answer().is_reply(); }));
    EXPECT_EQ(landed(), round) << "the page is there when the word is";
    EXPECT_EQ(answer().kind(), ReplyKind::kGrantS);
    EXPECT_EQ(answer().round(), uint16_t(round));
  }
}

TEST_P(MessengerContract, AfterFlushAllHasArrived) {
  for (uint64_t round = 1; round <= 20; round++) {
    ask(round);
    end(kAsks).flush();
    EXPECT_TRUE(end(kAsked).receive(*this)) << "round " << round;
    PeerRequest request;
    ASSERT_TRUE(take(&request));
    (void)grant(request, round);
    end(kAsked).flush();
    EXPECT_TRUE(answer().is_reply());
    EXPECT_EQ(landed(), round);
  }
}

TEST_P(MessengerContract, ARequestToAFormerIncarnationIsNotTaken) {
  slot().reply[kAsked.value].store(ReplyWord::asked(7, node(kAsked).incarnation()).raw);
  slot().page.store(kPage.raw);
  restart(kAsked);
  end(kAsks).ask(kAsked, kSlot, kPage);  // filled in before, sent afterwards
  end(kAsks).flush();
  (void)end(kAsked).receive(*this);
  PeerRequest request;
  EXPECT_FALSE(take(&request));
  EXPECT_TRUE(answer().is_open());
  ask(8);  // the next round is for this incarnation
  ASSERT_TRUE(comes(kAsked));
  EXPECT_TRUE(take(&request));
}

// Neither the word nor the frame of the slot that is another request's by now.
TEST_P(MessengerContract, AReplyToAFormerIncarnationLandsNowhere) {
  ask(1);
  ASSERT_TRUE(comes(kAsked));
  PeerRequest request;
  ASSERT_TRUE(take(&request));
  restart(kAsks);
  slot().line.store(kLine);
  EXPECT_EQ(grant(request, 4711), Messenger::kNowhere);
  end(kAsked).flush();
  EXPECT_EQ(answer().raw, 0u);
  EXPECT_NE(landed(), 4711u);
}

// Nobody may wait for such a message: a node that would, finds the other one gone.
TEST_P(MessengerContract, WhatIsSaidToANodeThatIsNotThereIsLost) {
  end(kAsks).ask(NodeId{2}, kSlot, kPage);
  end(kAsks).flush();
  PeerRequest request{.from = 2, .kind = RequestKind::kPeerRd, .slot = kSlot};
  EXPECT_EQ(end(kAsked).reply(request, {.kind = ReplyKind::kDropped}), Messenger::kNowhere);
  EXPECT_FALSE(end(kAsked).receive(*this));
}

}  // namespace conformance
