// Messages as bytes: what one side says the other side reads, and any other bytes are none.
#include "coherence/transport/tcp/message/message_frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace coherence::tcp {
namespace {

using Frame = std::vector<std::byte>;

template <class Message>
std::string why_not(const Frame& frame) {
  Message message;
  Problem problem;
  const Status read = decode(frame, &message, &problem);
  EXPECT_EQ(read.ok(), problem.text[0] == 0);
  return problem.text;
}

template <size_t bytes, class Message>
Frame frame_of(const Message& message) {
  std::byte head[bytes];
  encode(message, head);
  return Frame(head, head + bytes);
}
Frame ask(const std::function<void(AskMessage&)>& change = [](AskMessage&) {}) {
  AskMessage message{.serial = 77,
                     .page = PageId::at(MemoryNodeId{3}, 9),
                     .line = 5,
                     .slot = 6,
                     .kind = RequestKind::kPeerCopy,
                     .priority = 8};
  change(message);
  return frame_of<kAskBytes>(message);
}
Frame reply(ReplyMessage message, size_t page = 0) {
  Frame frame = frame_of<kReplyBytes>(message);
  frame.resize(frame.size() + page, std::byte{3});
  return frame;
}

TEST(TcpMessageFrame, WhatIsSaidIsRead) {
  AskMessage asked;
  Problem problem;
  ASSERT_TRUE(decode(ask(), &asked, &problem)) << problem.text;
  EXPECT_EQ(asked.serial, 77u);
  EXPECT_EQ(asked.page, PageId::at(MemoryNodeId{3}, 9));
  EXPECT_EQ(asked.line, 5u);
  EXPECT_EQ(asked.slot, 6u);
  EXPECT_EQ(asked.kind, RequestKind::kPeerCopy);
  EXPECT_EQ(asked.priority, 8u);
  ReplyMessage replied;
  const Frame frame = reply({.slot = 6, .round = 77, .kind = ReplyKind::kGrantM, .in_flight = true}, kPageSize);
  ASSERT_TRUE(decode(frame, &replied, &problem)) << problem.text;
  EXPECT_TRUE(replied.slot == 6 && replied.round == 77 && replied.kind == ReplyKind::kGrantM && replied.in_flight);
  EXPECT_EQ(replied.page, frame.data() + kReplyBytes);
  EXPECT_EQ(why_not<ReplyMessage>(reply({.more = (uint64_t{1} << 40) - 1, .kind = ReplyKind::kHeld})), "");
  EXPECT_EQ(why_not<ReplyMessage>(reply({.more = kNodesMax, .kind = ReplyKind::kDropped})), "");
  GrantCompleteMessage complete;
  ASSERT_TRUE(decode(frame_of<kGrantCompleteBytes>(GrantCompleteMessage{9}), &complete, &problem));
  EXPECT_EQ(complete.line, 9u);
  WakeupMessage woken;
  ASSERT_TRUE(decode(frame_of<kWakeupBytes>(WakeupMessage{uint64_t{1} << Wakeup::kNone, 31}), &woken, &problem));
  EXPECT_TRUE(woken.event == 31 && woken.otherwise == uint64_t{1} << 32);
}

TEST(TcpMessageFrame, WhatNamesNothingIsNone) {
  EXPECT_EQ(why_not<AskMessage>(ask([](AskMessage& m) { m.page = PageId(); })), "a request for no page");
  EXPECT_EQ(why_not<AskMessage>(ask([](AskMessage& m) { m.page = PageId::at(MemoryNodeId{64}, 0); })),
            "a request for no page");
  EXPECT_EQ(why_not<AskMessage>(ask([](AskMessage& m) { m.slot = kPeerSlots; })),
            "a request of a slot that there is not");
  EXPECT_EQ(why_not<AskMessage>(ask([](AskMessage& m) { m.kind = RequestKind(7); })), "a request that there is not");
  EXPECT_EQ(why_not<AskMessage>(ask([](AskMessage& m) { m.kind = RequestKind::kNone; })),
            "a request that there is not");
  EXPECT_EQ(why_not<AskMessage>(ask([](AskMessage& m) { m.serial = uint64_t{1} << 40; })),
            "a request whose number is none");
  EXPECT_EQ(why_not<ReplyMessage>(reply({.kind = ReplyKind(9)})), "a reply that there is not");
  EXPECT_EQ(why_not<ReplyMessage>(reply({.kind = ReplyKind::kNone})), "a reply that there is not");
  EXPECT_EQ(why_not<ReplyMessage>(reply({.slot = kPeerSlots, .kind = ReplyKind::kDone})),
            "a reply to a slot that there is not");
  EXPECT_EQ(why_not<ReplyMessage>(reply({.more = kNodesMax + 1, .kind = ReplyKind::kDropped})),
            "a reply that names a node that there is not");
  EXPECT_EQ(why_not<ReplyMessage>(reply({.more = uint64_t{1} << 40, .kind = ReplyKind::kHeld})),
            "a reply that names a node that there is not");
  for (const ReplyKind kind : {ReplyKind::kDropped, ReplyKind::kGrantSInPool})
    EXPECT_EQ(why_not<ReplyMessage>(reply({.kind = kind, .in_flight = true})), "a reply of another format");
  EXPECT_EQ(why_not<ReplyMessage>(reply({.kind = ReplyKind::kCopy, .in_flight = true}, kPageSize)),
            "a reply of another format");
  for (const WakeupMessage message :
       {WakeupMessage{1, kWakeupEvents}, WakeupMessage{0, 3}, WakeupMessage{uint64_t{1} << (Wakeup::kNone + 1), 3}})
    EXPECT_EQ(why_not<WakeupMessage>(frame_of<kWakeupBytes>(message)), "a wakeup of an event that there is not");
}

// Of any length but its own; and each byte of it counts.
TEST(TcpMessageFrame, AFrameHasOneLengthAndOneMeaning) {
  const Frame right[] = {ask(), reply({.kind = ReplyKind::kDone}), reply({.kind = ReplyKind::kGrantS}, kPageSize),
                         frame_of<kGrantCompleteBytes>(GrantCompleteMessage{9}),
                         frame_of<kWakeupBytes>(WakeupMessage{1, 0})};
  const std::function<std::string(const Frame&)> read[] = {why_not<AskMessage>, why_not<ReplyMessage>,
                                                           why_not<ReplyMessage>, why_not<GrantCompleteMessage>,
                                                           why_not<WakeupMessage>};
  for (size_t i = 0; i < std::size(right); i++) {
    EXPECT_EQ(read[i](right[i]), "");
    for (const size_t bytes : {size_t{0}, size_t{7}, right[i].size() - 1, right[i].size() + 1}) {
      Frame other = right[i];
      other.resize(bytes);
      EXPECT_NE(read[i](other), "") << i << ": " << bytes;
    }
  }
  for (const auto& [frame, zero] : {std::pair(right[1], 14), {right[3], 5}, {right[4], 13}}) {
    Frame other = frame;
    other[size_t(zero)] = std::byte{1};
    EXPECT_NE(why_not<ReplyMessage>(other) + why_not<GrantCompleteMessage>(other), "");
    EXPECT_NE(why_not<WakeupMessage>(other), "");
  }
}

TEST(TcpMessageFrame, AReplyFitsItsRequest) {
  EXPECT_TRUE(may_answer(RequestKind::kPeerJoin, ReplyKind::kGrantS));
  EXPECT_TRUE(may_answer(RequestKind::kPeerCopy, ReplyKind::kCopy));
  EXPECT_FALSE(may_answer(RequestKind::kPeerRd, ReplyKind::kCopy));
  EXPECT_FALSE(may_answer(RequestKind::kPeerWr, ReplyKind::kGrantS));
  for (const RequestKind kind : {RequestKind::kPeerInv, RequestKind::kPeerClaim})
    for (const ReplyKind reply :
         {ReplyKind::kGrantS, ReplyKind::kGrantM, ReplyKind::kGrantSInPool, ReplyKind::kGrantMInPool, ReplyKind::kCopy})
      EXPECT_FALSE(may_answer(kind, reply));
}

}  // namespace
}  // namespace coherence::tcp
