// Which peers may have a link, and what those hear that may not.
#include <gtest/gtest.h>

#include "link_pair.hpp"

namespace gcl_test {

class AdmissionTest : public ::testing::Test {
 protected:
  Hello hello(Who from, uint64_t link = 1) const { return {from, {self.role, self.id, 0}, 5, link, 0, 4096, false}; }
  Link& begin(const Hello& greeting) {
    EXPECT_EQ(admission.judge(greeting).refusal, Refusal::kNone);
    links.push_back(Link::accepting({self, greeting.from, 5, greeting.link, 4096}, 1));
    admission.begun(*links.back());
    return *links.back();
  }
  Refusal refusal(const Hello& greeting) const {
    const Admission::Decision decision = admission.judge(greeting);
    EXPECT_EQ(decision.refusal == Refusal::kNone, decision.reason[0] == 0);
    return decision.refusal;
  }

  const Who self = Who::memory_node(MemoryNodeId{0}, 100);
  const Who node = Who::node(NodeId{3}, 17);
  Admission admission{self, 5, 3};
  std::vector<std::unique_ptr<Link>> links;
};

TEST_F(AdmissionTest, ALinkIsFoundAgain) {
  Link& link = begin(hello(node));
  Hello again = hello(node);
  EXPECT_EQ(admission.judge(again).link, &link) << "the welcome may be what was lost";
  again.resumes = true;
  EXPECT_EQ(admission.judge(again).link, &link);
  again.to.start = 100;
  EXPECT_EQ(admission.judge(again).link, &link);
}

TEST_F(AdmissionTest, ALinkThatIsNotHereAnyMoreIsNotResumed) {
  Hello greeting = hello(node);
  greeting.resumes = true;
  EXPECT_EQ(refusal(greeting), Refusal::kUnknownLink);
  Link& link = begin(hello(node));
  admission.over(link);
  EXPECT_EQ(refusal(greeting), Refusal::kUnknownLink);
  EXPECT_EQ(refusal(hello(node)), Refusal::kHadItsLink);
}

TEST_F(AdmissionTest, ALinkIsItsPeersAlone) {
  begin(hello(node));
  EXPECT_EQ(refusal(hello(Who::node(NodeId{4}, 17))), Refusal::kUnknownLink);
  EXPECT_EQ(refusal(hello(Who::node(NodeId{3}, 18))), Refusal::kUnknownLink);
  EXPECT_EQ(refusal(hello(Who::tool(17))), Refusal::kUnknownLink);
}

// Where another than the link says which starts may be here.
TEST_F(AdmissionTest, AStartHasAnotherLinkWhereItIsLetWhenTheLastOneHasNoConnection) {
  Admission lets{self, 5, 3, true};
  links.push_back(Link::accepting({self, node, 5, 1, 4096}, 1));
  Link& link = *links.back();
  lets.begun(link);
  ASSERT_TRUE(link.attach(hello(node), 1));
  EXPECT_EQ(lets.judge(hello(node, 2)).refusal, Refusal::kHadItsLink) << "it is connected";
  link.detach("the test's", 2);
  const Admission::Decision decision = lets.judge(hello(node, 2));
  EXPECT_EQ(decision.refusal, Refusal::kNone);
  EXPECT_EQ(decision.replaced, &link);
  lets.over(link);
  EXPECT_EQ(lets.judge(hello(node, 2)).refusal, Refusal::kNone);
  EXPECT_EQ(lets.judge(hello(Who::node(NodeId{3}, 16), 2)).refusal, Refusal::kOlder);
}

// A clock may have been set back.
TEST_F(AdmissionTest, OfMemoryNodesNoStartIsOlderAndNoneReplacesWhatIsConnected) {
  const Who one = Who::memory_node(MemoryNodeId{1}, 1000);
  Link& link = begin(hello(one));
  for (const uint64_t start : {1001, 999}) {
    EXPECT_EQ(admission.judge(hello(Who::memory_node(MemoryNodeId{1}, start), 2)).replaced, &link)
        << "it has no connection";
    EXPECT_EQ(refusal(hello(Who::memory_node(MemoryNodeId{1}, start), 2)), Refusal::kNone);
  }
  EXPECT_EQ(refusal(hello(one, 2)), Refusal::kHadItsLink);
  ASSERT_TRUE(link.attach(hello(one), 1));
  ASSERT_TRUE(link.connected());
  for (const uint64_t start : {1001, 999}) {
    const Admission::Decision decision = admission.judge(hello(Who::memory_node(MemoryNodeId{1}, start), 2));
    EXPECT_EQ(decision.refusal, Refusal::kHadItsLink);
    EXPECT_STREQ(decision.reason, "memory node 1 (start 1000) is here");
  }
}

TEST_F(AdmissionTest, ANewerStartReplacesAnOlderOne) {
  Link& link = begin(hello(node));
  EXPECT_EQ(refusal(hello(node, 2)), Refusal::kHadItsLink);
  const Hello newer = hello(Who::node(NodeId{3}, 18), 2);
  EXPECT_EQ(admission.judge(newer).replaced, &link);
  admission.over(link);
  begin(newer);
  EXPECT_EQ(refusal(hello(node, 3)), Refusal::kOlder);
  EXPECT_EQ(refusal(hello(node, 1)), Refusal::kOlder);
}

TEST_F(AdmissionTest, AStartThatServesMemoryIsAnotherThanANodes) {
  begin(hello(node));
  begin(hello(Who::memory_node(MemoryNodeId{3}, 2), 2));
}

TEST_F(AdmissionTest, ToolsHaveAnyNumber) {
  begin(hello(Who::tool(1), 1));
  begin(hello(Who::tool(1), 2));
}

TEST_F(AdmissionTest, ToolsLeaveRoomForNodes) {
  begin(hello(Who::tool(1), 1));
  begin(hello(Who::tool(1), 2));
  EXPECT_EQ(refusal(hello(Who::tool(2), 3)), Refusal::kFull);
  begin(hello(node, 3));
}

TEST_F(AdmissionTest, ThereAreOnlySoMany) {
  for (uint8_t n = 0; n < 3; n++) begin(hello(Who::node(NodeId{n}, 1), n + 1u));
  EXPECT_EQ(refusal(hello(node, 9)), Refusal::kFull) << "node 3 is new";
  EXPECT_EQ(refusal(hello(Who::node(NodeId{2}, 2), 9)), Refusal::kNone) << "it takes its own link's place";
}

TEST_F(AdmissionTest, WhoIsMeantAndOfWhichCluster) {
  Hello greeting = hello(node);
  greeting.to = Who::memory_node(MemoryNodeId{1}, 0);
  EXPECT_EQ(refusal(greeting), Refusal::kNotMe);
  greeting = hello(node);
  greeting.to.start = 99;
  EXPECT_EQ(refusal(greeting), Refusal::kUnknownLink) << "it has started anew";
  greeting = hello(node);
  greeting.cluster = 6;
  EXPECT_EQ(refusal(greeting), Refusal::kCluster);
  EXPECT_EQ(refusal(hello(self)), Refusal::kIsMe) << "its own bytes come back";
}

// It learns from the memory node that answers which one it is.
TEST_F(AdmissionTest, AToolMayAskWhicheverClusterItIs) {
  Hello greeting = hello(Who::tool(7));
  greeting.cluster = 0;
  EXPECT_EQ(refusal(greeting), Refusal::kNone);
  greeting.cluster = 6;
  EXPECT_EQ(refusal(greeting), Refusal::kCluster);
  greeting = hello(node);
  greeting.cluster = 0;
  EXPECT_EQ(refusal(greeting), Refusal::kCluster) << "a node knows its own";
}

// --- refusals travel

TEST(Refusals, OfALinkThatIsUnknownEndIt) {
  LinkPair pair;
  pair.connect();
  pair.deliver_all();
  pair.cut();
  pair.admission.over(*pair.b);
  pair.connect();
  pair.deliver_all();
  EXPECT_EQ(pair.a->ending(), Ending::kRefused);
  EXPECT_STREQ(pair.a->reason(), "memory node 1 (start 1000) refuses the link: no such link is here any more");
}

TEST(Refusals, OfTooManyAreWorthAnotherTry) {
  LinkPair pair;
  pair.connect();
  Welcome full{Refusal::kFull, {}};
  snprintf(full.reason, sizeof full.reason, "there are\ttoo many links");
  pair.to_a.resize(kWelcomeBytes);
  write_welcome(full, std::span<std::byte, kWelcomeBytes>(pair.to_a.data(), kWelcomeBytes));
  pair.arrive_at_a(LinkPair::kAll);
  EXPECT_FALSE(pair.a->over());
  EXPECT_FALSE(pair.a->attached());
  EXPECT_STREQ(pair.a->reason(), "memory node 1 refuses the link: there are\\x09too many links");
}

TEST(Refusals, OfAnotherVersionAreRead) {
  std::byte bytes[kWelcomeBytes];
  Welcome welcome{Refusal::kVersion, {}};
  snprintf(welcome.reason, sizeof welcome.reason, "it speaks version 1 of links, this side version 9");
  write_welcome(welcome, bytes);
  bytes[4] = std::byte{9};
  bytes[8] = std::byte{200};  // a refusal that this side does not know yet
  Welcome read;
  Problem problem;
  ASSERT_TRUE(read_welcome(bytes, &read, &problem).ok());
  EXPECT_EQ(read.refusal, Refusal::kVersion);
  EXPECT_STREQ(read.reason, welcome.reason);
  bytes[8] = std::byte{0};
  EXPECT_EQ(read_welcome(bytes, &read, &problem).error(), Errc::kIncompatible) << "its welcome may mean anything";
  EXPECT_STREQ(problem.text, "it speaks version 9 of links, this side version 1");
}

TEST(Refusals, AGreetingWithNonsenseInAnyFieldIsNone) {
  std::byte right[kHelloBytes];
  write_hello({Who::node(NodeId{3}, 17), Who::memory_node(MemoryNodeId{0}, 0), 5, 1, 0, 4096, true}, right);
  Hello hello;
  Problem problem;
  ASSERT_TRUE(read_hello(right, &hello, &problem).ok());
  struct Case {
    size_t at;
    uint8_t value;
    Errc error;
  };
  for (const Case& wrong : {Case{0, 1, Errc::kCorrupt},
                            {4, 2, Errc::kIncompatible},
                            {6, 63, Errc::kCorrupt},
                            {8, 9, Errc::kCorrupt},
                            {9, 58, Errc::kCorrupt},
                            {10, 0, Errc::kCorrupt},
                            {11, 64, Errc::kCorrupt},
                            {12, 2, Errc::kCorrupt},
                            {16, 0, Errc::kCorrupt},
                            {56, 1, Errc::kCorrupt}}) {
    std::byte bytes[kHelloBytes];
    memcpy(bytes, right, sizeof right);
    bytes[wrong.at] = std::byte{wrong.value};
    EXPECT_EQ(read_hello(bytes, &hello, &problem).error(), wrong.error) << "byte " << wrong.at;
  }
}

}  // namespace gcl_test
