// step(), cell by cell; and the table in coherence/protocol.md, which must be what step() does.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "coherence/line/line_machine.hpp"
#include "tests/support/line_text.hpp"

namespace coherence {
namespace {

constexpr NodeId kMe{5}, kLower{2}, kHigher{9};
using K = Event::Kind;

LineState idle(MsiState msi) {
  LineState s;
  s.msi = msi;
  return s;
}
LineState in(MsiState msi, LineOp op, NodeSet waiting = {}) {
  LineState s = idle(msi);
  s.op = op;
  s.waiting = waiting;
  return s;
}
PeerRequest from(NodeId n, RequestKind kind, uint8_t priority = 0) { return {n.value, kind, priority, 0, 0, 1}; }
Event peer(NodeId n, RequestKind kind, bool latched = true, bool may_leave = true) {
  return {.kind = K::kPeer, .latched = latched, .may_leave = may_leave, .request = from(n, kind)};
}
Event done(uint64_t old) { return {.kind = K::kBatchDone, .old = old}; }
Event done_dead(uint64_t old) {  // kLower is dead and repairable
  return {.kind = K::kBatchDone, .repairable = NodeSet::of(kLower), .old = old};
}
Event replied(NodeId n, ReplyKind kind, NodeId passed_to = {}) {
  return {.kind = K::kReply, .reply = kind, .from = n, .passed_to = passed_to};
}

// --- the table as text
// -------------------------------------------------------------------------------------------------

struct Row {
  const char* when;
  LineState state;
  Event event;
  Features on = Features::all();
};

std::vector<Row> rows() {
  const uint64_t free = 0, lower_holds = LatchWord::owned_by(kLower).raw, me_holds = LatchWord::owned_by(kMe).raw;
  const uint64_t my_share = LatchWord::sole_reader(kMe).raw, their_share = LatchWord::sole_reader(kLower).raw;
  const MsiState I = MsiState::kInvalid, S = MsiState::kShared, M = MsiState::kModified;
  const NodeSet one = NodeSet::of(kLower);
  LineState serving_wr = in(M, LineOp::kHandOverPosted), serving_rd = in(M, LineOp::kDowngradePosted),
            serving_inv = in(S, LineOp::kInvalidatePosted);
  serving_wr.serving = from(kLower, RequestKind::kPeerWr);
  serving_rd.serving = from(kLower, RequestKind::kPeerRd);
  serving_inv.serving = from(kLower, RequestKind::kPeerInv);
  LineState once = in(S, LineOp::kUpgradePosted);
  once.failures = 1;
  LineState kept = in(S, LineOp::kWaitUpgrade, one);
  kept.parked[0] = from(kLower, RequestKind::kPeerInv);
  kept.parked_count = 1;
  LineState serving_wr_0 = serving_wr;
  serving_wr_0.op = LineOp::kGiveUpPosted;
  LineState starved = in(I, LineOp::kWaitExclusive, one), barred = idle(M);
  starved.priority = 1;
  barred.bar = 2;
  auto without = [](Feature f) { return Features::all().without(f); };
  LineState held = idle(M);
  held.holds_shared = 1;
  LineState held_s = held, held_x = idle(M), held_once = in(S, LineOp::kUpgradePosted);
  held_s.msi = S;
  held_x.holds_exclusive = 1;
  held_once.failures = held_once.holds_shared = 1;
  LineState held_u = in(S, LineOp::kWaitUpgrade, one);
  held_u.holds_shared = 1;
  LineState claiming = in(I, LineOp::kClaimPosted), upgrading = in(S, LineOp::kClaimPosted);
  claiming.sharers = upgrading.sharers = one;
  LineState claimed = in(I, LineOp::kWaitClaimed, one), claimed_s = in(S, LineOp::kWaitClaimed, one);
  claimed.sharers = claimed_s.sharers = one;
  auto met = [](LineState s) {  // by a claim, which is parked
    s.parked[0] = from(kHigher, RequestKind::kPeerClaim);
    s.parked_count = 1;
    return s;
  };
  auto joins = [](LineState s) {
    s.joins = true;
    return s;
  };
  const LineState joining = joins(in(I, LineOp::kWaitShared, one));
  LineState serving_join = serving_rd;
  serving_join.serving.kind = RequestKind::kPeerJoin;
  serving_join.sharers = one;
  LineState unclaimed_s = in(S, LineOp::kUnclaimPosted);
  LineState passed_on = idle(I), passing = serving_wr;
  passed_on.passed_to = passing.passed_to = kLower;
  passing.parked[0] = from(kHigher, RequestKind::kPeerRd);
  passing.parked_count = 1;
  LineState held_claim = upgrading;
  held_claim.holds_shared = 1;
  LineState looking = in(I, LineOp::kReadPosted), copied = in(I, LineOp::kWithdrawPosted), told = copied;
  looking.copy_will_do = true;
  copied.granted = ReplyKind::kCopy;
  told.granted = ReplyKind::kHeld;
  const uint64_t lower_claims = LatchWord::claimed_by(kLower, NodeSet::of(kHigher)).raw;
  const auto taking = [&](LineState t, LatchWord word) {  // from kLower
    t.taken_from = word.owner();
    t.sharers = word.readers();
    return t;
  };
  return {
      {"read", idle(I), {.kind = K::kFetchShared}},
      {"write", idle(I), {.kind = K::kFetchExclusive}},
      {"write", idle(S), {.kind = K::kFetchExclusive}},
      {"evict", idle(S), {.kind = K::kEvict}},
      {"evict", idle(M), {.kind = K::kEvict}},
      {"done, no owner", in(I, LineOp::kReadPosted), done(their_share)},
      {"done, owner o", in(I, LineOp::kReadPosted), done(lower_holds)},
      {"done, no owner", in(I, LineOp::kProbePosted), done(my_share)},
      {"done, dead owner", in(I, LineOp::kProbePosted), done_dead(lower_holds | my_share)},
      {"done, as expected", taking(in(I, LineOp::kTakeReadPosted), {lower_holds | my_share}),
       done_dead(lower_holds | my_share)},
      {"done, another word", taking(in(I, LineOp::kTakeReadPosted), {lower_holds | my_share}), done_dead(my_share)},
      {"done", in(I, LineOp::kRepairedPosted), done_dead(me_holds)},
      {"done, dead owner", in(I, LineOp::kWritePosted), done_dead(lower_claims)},
      {"done, dead reader", in(I, LineOp::kWritePosted), done_dead(their_share)},
      {"done, as expected", taking(in(I, LineOp::kTakeWritePosted), {lower_claims}), done_dead(lower_claims)},
      {"done, as expected, nobody left", taking(in(I, LineOp::kTakeWritePosted), {their_share}),
       done_dead(their_share)},
      {"done, free", taking(in(I, LineOp::kTakeWritePosted), {lower_holds}), done_dead(free)},
      {"done, dead reader", in(S, LineOp::kUpgradePosted), done_dead(my_share | their_share)},
      {"done, as expected", taking(in(S, LineOp::kTakeWritePosted), {my_share | their_share}),
       done_dead(my_share | their_share)},
      {"done, sole reader", taking(in(S, LineOp::kTakeWritePosted), {my_share | their_share}), done_dead(my_share)},
      {"done, owner o", in(I, LineOp::kProbePosted), done(lower_holds)},
      {"done, free", in(I, LineOp::kWritePosted), done(free)},
      {"done, owner o", in(I, LineOp::kWritePosted), done(lower_holds)},
      {"done, readers", in(I, LineOp::kWritePosted), done(their_share)},
      {"done, readers, no claim", in(I, LineOp::kWritePosted), done(their_share), without(Feature::kClaim)},
      {"done, names us", in(I, LineOp::kWritePosted), done(me_holds)},
      {"done", in(I, LineOp::kReclaimPosted), done(0)},
      {"done, sole reader", in(S, LineOp::kUpgradePosted), done(my_share)},
      {"done, readers", in(S, LineOp::kUpgradePosted), done(my_share | their_share)},
      {"done, owner o", in(S, LineOp::kUpgradePosted), done(lower_holds | my_share)},
      {"done, readers, no claim", in(S, LineOp::kUpgradePosted), done(my_share | their_share),
       without(Feature::kClaim)},
      {"done, readers, 2nd, no claim", once, done(my_share | their_share), without(Feature::kClaim)},
      {"done, nobody else", in(S, LineOp::kFallbackPosted), done(my_share)},
      {"done, readers", in(S, LineOp::kFallbackPosted), done(my_share | their_share)},
      {"done, owner o", in(S, LineOp::kFallbackPosted), done(lower_holds | my_share)},
      {"done, as expected", claiming, done(their_share)},
      {"done, other readers", claiming, done(LatchWord::sole_reader(kHigher).raw)},
      {"done, free", claiming, done(free)},
      {"done, owner o", claiming, done(lower_holds)},
      {"done, as expected", upgrading, done(my_share | their_share)},
      {"done, other readers", upgrading, done(my_share | LatchWord::sole_reader(kHigher).raw)},
      {"done, sole reader", upgrading, done(my_share)},
      {"done, owner o", upgrading, done(lower_holds | my_share)},
      {"done, owner o, held S", held_claim, done(lower_holds | my_share)},
      {"Done, last", claimed, replied(kLower, ReplyKind::kDone)},
      {"Dropped, last", claimed_s, replied(kLower, ReplyKind::kDropped)},
      {"Held, last", claimed, replied(kLower, ReplyKind::kHeld)},
      {"Held, last", claimed_s, replied(kLower, ReplyKind::kHeld)},
      {"done", in(I, LineOp::kUnclaimPosted), done(me_holds | their_share)},
      {"done", unclaimed_s, done(me_holds | their_share)},
      {"done", met(unclaimed_s), done(me_holds | their_share)},
      {"PeerClaim", idle(S), peer(kHigher, RequestKind::kPeerClaim)},
      {"PeerClaim, latched", idle(S), peer(kHigher, RequestKind::kPeerClaim, false)},
      {"PeerClaim, held S", held_s, peer(kHigher, RequestKind::kPeerClaim)},
      {"PeerClaim", idle(I), peer(kHigher, RequestKind::kPeerClaim, false)},
      {"PeerClaim", in(I, LineOp::kReadPosted), peer(kHigher, RequestKind::kPeerClaim, false)},
      {"PeerClaim", in(I, LineOp::kWaitShared, one), peer(kHigher, RequestKind::kPeerClaim, false)},
      {"PeerClaim", in(I, LineOp::kWaitExclusive, one), peer(kHigher, RequestKind::kPeerClaim, false)},
      {"PeerClaim", in(S, LineOp::kUpgradePosted), peer(kHigher, RequestKind::kPeerClaim, false)},
      {"PeerClaim", upgrading, peer(kHigher, RequestKind::kPeerClaim, false)},
      {"PeerClaim", in(S, LineOp::kWaitUpgrade, one), peer(kHigher, RequestKind::kPeerClaim, false)},
      {"PeerClaim", in(S, LineOp::kReleasePosted), peer(kHigher, RequestKind::kPeerClaim, false)},
      {"PeerClaim", serving_rd, peer(kHigher, RequestKind::kPeerClaim, false)},
      {"done, no owner", met(in(I, LineOp::kReadPosted)), done(their_share)},
      {"done, owner o", met(in(I, LineOp::kReadPosted)), done(lower_holds)},
      {"GrantS", met(in(I, LineOp::kWaitShared, one)), replied(kLower, ReplyKind::kGrantS)},
      {"Dropped", met(in(I, LineOp::kWaitShared, one)), replied(kLower, ReplyKind::kDropped)},
      {"done", met(serving_rd), done(me_holds | their_share)},
      {"PeerRd", claimed, peer(kHigher, RequestKind::kPeerRd, false)},
      {"PeerWr", claimed_s, peer(kHigher, RequestKind::kPeerWr, false)},
      {"PeerRd of whom we wait for", claimed, peer(kLower, RequestKind::kPeerRd, false)},
      {"PeerInv", claimed_s, peer(kHigher, RequestKind::kPeerInv, false)},
      {"PeerWr", passed_on, peer(kHigher, RequestKind::kPeerWr, false)},
      {"PeerWr, no hints", passed_on, peer(kHigher, RequestKind::kPeerWr, false), without(Feature::kHints)},
      {"PeerRd", in(I, LineOp::kWaitExclusive, one), peer(kHigher, RequestKind::kPeerRd, false)},
      {"Dropped, passed on", in(I, LineOp::kWaitShared, one), replied(kLower, ReplyKind::kDropped, kHigher)},
      {"Dropped, passed on", in(I, LineOp::kWaitExclusive, one), replied(kLower, ReplyKind::kDropped, kHigher)},
      {"Dropped, passed to us", in(I, LineOp::kWaitExclusive, one), replied(kLower, ReplyKind::kDropped, kMe)},
      {"read, o took it a moment ago", idle(I), {.kind = K::kFetchShared, .passed_to = kLower}},
      {"read, o took it a moment ago, no join",
       idle(I),
       {.kind = K::kFetchShared, .passed_to = kLower},
       without(Feature::kJoin)},
      {"GrantS", joining, replied(kLower, ReplyKind::kGrantS)},
      {"GrantS, in pool", joining, replied(kLower, ReplyKind::kGrantSInPool)},
      {"Dropped", joining, replied(kLower, ReplyKind::kDropped)},
      {"Dropped, passed on", joining, replied(kLower, ReplyKind::kDropped, kHigher)},
      {"Held", joining, replied(kLower, ReplyKind::kHeld)},
      {"PeerClaim", joining, peer(kHigher, RequestKind::kPeerClaim, false)},
      {"peer gone", joining, {.kind = K::kGone, .from = kLower}},
      {"done, the granter had not added our bit", joins(in(I, LineOp::kProbePosted)), done(free)},
      {"done, the granter had", joins(in(I, LineOp::kProbePosted)), done(my_share)},
      {"PeerJoin", idle(M), peer(kLower, RequestKind::kPeerJoin)},
      {"PeerJoin", idle(S), peer(kLower, RequestKind::kPeerJoin)},
      {"done", serving_join, done(me_holds)},
      {"GrantS", in(I, LineOp::kWaitShared, one), replied(kLower, ReplyKind::kGrantS)},
      {"Dropped", in(I, LineOp::kWaitShared, one), replied(kLower, ReplyKind::kDropped)},
      {"GrantM", in(I, LineOp::kWaitExclusive, one), replied(kLower, ReplyKind::kGrantM)},
      {"Done, last", in(I, LineOp::kWaitExclusive, one), replied(kLower, ReplyKind::kDone)},
      {"Done, not last", in(I, LineOp::kWaitExclusive, one.with(kHigher)), replied(kLower, ReplyKind::kDone)},
      {"Done, last", in(S, LineOp::kWaitUpgrade, one), replied(kLower, ReplyKind::kDone)},
      {"Dropped, last", kept, replied(kLower, ReplyKind::kDropped)},
      {"PeerWr", idle(M), peer(kLower, RequestKind::kPeerWr)},
      {"PeerRd", idle(M), peer(kLower, RequestKind::kPeerRd)},
      {"PeerInv", idle(M), peer(kLower, RequestKind::kPeerInv)},
      {"PeerWr", idle(S), peer(kLower, RequestKind::kPeerWr)},
      {"PeerInv", idle(S), peer(kLower, RequestKind::kPeerInv)},
      {"PeerRd", idle(S), peer(kLower, RequestKind::kPeerRd)},
      {"PeerWr", idle(I), peer(kLower, RequestKind::kPeerWr, false)},
      {"PeerInv, latched", idle(S), peer(kLower, RequestKind::kPeerInv, false)},
      {"PeerWr, latched", idle(M), peer(kLower, RequestKind::kPeerWr, false)},
      {"PeerWr, log not flushed", idle(M), peer(kLower, RequestKind::kPeerWr, true, false)},
      {"PeerWr, grant in flight", idle(M), peer(kLower, RequestKind::kPeerWr, true, false)},
      {"PeerInv, grant in flight", idle(S), peer(kLower, RequestKind::kPeerInv, true, false)},
      {"PeerWr, held S", held, peer(kLower, RequestKind::kPeerWr)},
      {"PeerRd, held S", held, peer(kLower, RequestKind::kPeerRd)},
      {"PeerInv of lower", in(S, LineOp::kWaitUpgrade, one), peer(kLower, RequestKind::kPeerInv, false)},
      {"PeerInv of higher", in(S, LineOp::kWaitUpgrade, one), peer(kHigher, RequestKind::kPeerInv, false)},
      {"PeerWr", in(I, LineOp::kWaitExclusive, one), peer(kLower, RequestKind::kPeerWr, false)},
      {"done", serving_wr, done(me_holds)},
      {"done", serving_rd, done(me_holds | their_share)},
      {"done", passing, done(me_holds | LatchWord::sole_reader(kHigher).raw)},
      {"done, answered before", serving_wr, {.kind = K::kBatchDone, .answered = true, .old = me_holds}},
      {"done, answered before", serving_rd, {.kind = K::kBatchDone, .answered = true, .old = me_holds | their_share}},
      {"done, answered before", serving_inv, {.kind = K::kBatchDone, .answered = true, .old = my_share}},
      {"done", serving_inv, done(my_share)},
      {"done", in(S, LineOp::kReleasePosted), done(my_share)},
      {"done", in(M, LineOp::kReleasePosted), done(me_holds)},
      {"peer gone", in(I, LineOp::kWaitExclusive, one), {.kind = K::kGone, .from = kLower}},
      {"PeerInv, held S", held_s, peer(kLower, RequestKind::kPeerInv)},
      {"PeerInv of lower, held S", held_u, peer(kLower, RequestKind::kPeerInv, false)},
      {"done, readers, 2nd, held S, no claim", held_once, done(my_share | their_share), without(Feature::kClaim)},
      {"PeerRd, held X", held_x, peer(kLower, RequestKind::kPeerRd)},
      {"PeerRd, held X, latched", held_x, peer(kLower, RequestKind::kPeerRd, false)},
      {"PeerWr, held X", held_x, peer(kLower, RequestKind::kPeerWr)},
      {"PeerCopy, held X", held_x, peer(kLower, RequestKind::kPeerCopy)},
      {"PeerCopy, held X, latched", held_x, peer(kLower, RequestKind::kPeerCopy, false)},
      {"PeerCopy, held X, log not flushed", held_x, peer(kLower, RequestKind::kPeerCopy, true, false)},
      {"PeerCopy", idle(M), peer(kLower, RequestKind::kPeerCopy)},
      {"PeerCopy", idle(S), peer(kLower, RequestKind::kPeerCopy)},
      {"read once", idle(I), {.kind = K::kFetchCopy}},
      {"done, owner o, looking", looking, done(lower_holds)},
      {"Copy", in(I, LineOp::kWaitShared, one), replied(kLower, ReplyKind::kCopy)},
      {"Held", in(I, LineOp::kWaitShared, one), replied(kLower, ReplyKind::kHeld)},
      {"done, Copy before", copied, done(lower_holds | my_share)},
      {"done, Held before", told, done(lower_holds | my_share)},
      {"Held", in(I, LineOp::kWaitExclusive, one), replied(kLower, ReplyKind::kHeld)},
      {"Held", in(S, LineOp::kWaitUpgrade, one), replied(kLower, ReplyKind::kHeld)},
      {"done, no forwarding", serving_wr, done(me_holds), without(Feature::kForwarding)},
      {"done, no forwarding", serving_rd, done(me_holds | their_share), without(Feature::kForwarding)},
      {"GrantM, in pool", in(I, LineOp::kWaitExclusive, one), replied(kLower, ReplyKind::kGrantMInPool)},
      {"GrantS, in pool", in(I, LineOp::kWaitShared, one), replied(kLower, ReplyKind::kGrantSInPool)},
      {"PeerWr, no hand-over", idle(M), peer(kLower, RequestKind::kPeerWr), without(Feature::kHandOver)},
      {"PeerRd, no hand-over", idle(M), peer(kLower, RequestKind::kPeerRd), without(Feature::kHandOver)},
      {"done", serving_wr_0, done(me_holds)},
      {"write, no upgrade", idle(S), {.kind = K::kFetchExclusive}, without(Feature::kUpgrade)},
      {"PeerInv of lower, no tie-break", in(S, LineOp::kWaitUpgrade, one), peer(kLower, RequestKind::kPeerInv, false),
       without(Feature::kTieBreak)},
      {"GrantM, refused before", starved, replied(kLower, ReplyKind::kGrantM)},
      {"PeerRd, refused less often", barred, peer(kLower, RequestKind::kPeerRd)},
  };
}

std::string render(const Row& row) {
  LineState s = row.state;
  std::string line = "| " + text(s) + " | " + row.when + " | ";
  Actions a = step(s, kMe, row.event, row.on);
  EXPECT_FALSE(a.bad) << line;
  std::string out;
  auto add = [&](const std::string& t) { out += (out.empty() ? "" : "; ") + t; };
  for (int i = 0; i < a.reply_count; i++)
    add(std::string("reply ") + text(a.replies[i].kind) + (a.replies[i].passed_to.valid() ? ", passed on" : ""));
  const bool joined = a.post == Post::kDowngrade && !a.over.empty();
  if (a.post != Post::kNone) add(std::string("post ") + (joined ? "WRITE dirty; FAA b+b_j-X" : text(a.post)));
  if (a.send != RequestKind::kNone) add(std::string("send ") + text(a.send));
  static constexpr const char* kOutcomes[] = {"finished", "finished, copied", "finished, held"};
  if (a.finished) add(kOutcomes[int(a.outcome)]);
  return line + out + " | " + text(s) + " |";
}

}  // namespace

TEST(LineMachine, TheReadmesTableIsWhatStepDoes) {
  std::string made = "| state | event | actions | then |\n|---|---|---|---|\n";
  for (const Row& row : rows()) made += render(row) + "\n";
  std::ifstream file(GCL_COHERENCE_PROTOCOL);
  std::stringstream text;
  text << file.rdbuf();
  std::string readme = text.str();
  size_t begin = readme.find("<!-- table -->\n"), end = readme.find("<!-- /table -->");
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  begin += strlen("<!-- table -->\n");
  EXPECT_EQ(readme.substr(begin, end - begin), made) << "the table should read:\n" << made;
}

TEST(LineMachine, AFullLineRefusesTheLowestPriority) {
  LineState s = idle(MsiState::kModified);
  for (uint8_t n = 10; n < 10 + kParkedMax; n++)
    step(s, kMe, {.kind = K::kPeer, .request = from(NodeId{n}, RequestKind::kPeerWr, 3)});
  EXPECT_EQ(s.parked_count, kParkedMax);
  Actions a = step(s, kMe, {.kind = K::kPeer, .request = from(NodeId{30}, RequestKind::kPeerWr, 3)});
  ASSERT_EQ(a.reply_count, 1);
  EXPECT_EQ(a.replies[0].to.from, 30);
  EXPECT_EQ(a.replies[0].passed_to, kMe);  // here, but not now
  a = step(s, kMe, {.kind = K::kPeer, .request = from(NodeId{31}, RequestKind::kPeerWr, 4)});
  ASSERT_EQ(a.reply_count, 1);
  EXPECT_EQ(a.replies[0].to.from, 10);
  a = step(s, kMe, {.kind = K::kServe, .latched = true});
  EXPECT_EQ(a.to, NodeId{31});  // the most urgent first
}

TEST(LineMachine, ADowngradeGrantsEveryParkedReaderWhoseRequestStands) {
  LineState s = idle(MsiState::kModified);
  for (uint8_t n : {1, 2, 3}) step(s, kMe, {.kind = K::kPeer, .request = from(NodeId{n}, RequestKind::kPeerRd)});
  Actions a = step(s, kMe, {.kind = K::kServe, .latched = true});
  ASSERT_EQ(a.post, Post::kDowngrade);
  a = step(s, kMe, done(LatchWord::owned_by(kMe).raw | 0b0110));
  ASSERT_EQ(a.reply_count, 3);
  int grants = 0;
  for (int i = 0; i < 3; i++) grants += a.replies[i].kind == ReplyKind::kGrantS;
  EXPECT_EQ(grants, 2);  // node 3's bit is not there: it looks at the word again
  EXPECT_EQ(s.parked_count, 0);
}

// The serving one joins, too; a node that was granted before the batch was complete is not answered again.
TEST(LineMachine, ADowngradeAddsTheBitsOfAllThatJoin) {
  for (const bool answered : {false, true}) {
    LineState s = idle(MsiState::kModified);
    for (uint8_t n : {1, 2}) step(s, kMe, {.kind = K::kPeer, .request = from(NodeId{n}, RequestKind::kPeerJoin)});
    step(s, kMe, {.kind = K::kPeer, .request = from(NodeId{3}, RequestKind::kPeerRd)});
    Actions a = step(s, kMe, {.kind = K::kServe, .latched = true});
    ASSERT_EQ(a.post, Post::kDowngrade);
    EXPECT_EQ(a.over, NodeSet::of(NodeId{1}).with(NodeId{2}));
    const uint64_t old = LatchWord::owned_by(kMe).raw | LatchWord::add_reader(NodeId{3});
    a = step(s, kMe, {.kind = K::kBatchDone, .answered = answered, .old = old});
    EXPECT_EQ(a.reply_count, answered ? 0 : 3);
    for (int i = 0; i < a.reply_count; i++) EXPECT_EQ(a.replies[i].kind, ReplyKind::kGrantS);
    EXPECT_EQ(s.parked_count, 0);
    EXPECT_FALSE(a.bad);
  }
}

// coherence.early-grant-bound.  With the batch where early answers and hints are on, as then they hear where the page
// will be; else after it.
TEST(LineMachine, AHandOverSendsTheOtherParkedOnesAway) {
  const Features all = Features::all();
  for (const Features on : {all, all.without(Feature::kEarlyAnswers), all.without(Feature::kHints)}) {
    const bool early = on.has(Feature::kEarlyAnswers) && on.has(Feature::kHints);
    LineState s = idle(MsiState::kModified);
    for (uint8_t n : {1, 2}) step(s, kMe, {.kind = K::kPeer, .request = from(NodeId{n}, RequestKind::kPeerWr)}, on);
    Actions a = step(s, kMe, {.kind = K::kServe, .latched = true}, on);
    ASSERT_EQ(a.post, Post::kHandOver);
    EXPECT_EQ(a.to, NodeId{1});
    ASSERT_EQ(a.reply_count, early ? 1 : 0);
    if (early) {
      EXPECT_EQ(a.replies[0].passed_to, NodeId{1});
    }
    Actions after = step(s, kMe, done(LatchWord::owned_by(kMe).raw), on);
    ASSERT_EQ(after.reply_count, early ? 1 : 2);
    EXPECT_EQ(after.replies[0].kind, ReplyKind::kGrantM);
    const Actions::Reply& refused = early ? a.replies[0] : after.replies[1];
    EXPECT_EQ(refused.kind, ReplyKind::kDropped);
    EXPECT_EQ(refused.to.from, 2);
    EXPECT_EQ(s.msi, MsiState::kInvalid);
    EXPECT_EQ(s.parked_count, 0);
    EXPECT_EQ(after.latch, LatchEnd::kRelease);
  }
}

TEST(LineMachine, PrioritiesGrowWithRefusalsOrStayWhereTheyAre) {
  for (bool ages : {true, false}) {
    LineState s = in(MsiState::kInvalid, LineOp::kWaitExclusive, NodeSet::of(kLower));
    const Features on = ages ? Features::all() : Features::all().without(Feature::kAgeing);
    for (int i = 0; i < 3; i++) {
      step(s, kMe, replied(kLower, ReplyKind::kDropped), on);
      step(s, kMe, done(LatchWord::owned_by(kLower).raw), on);
    }
    EXPECT_EQ(s.priority, ages ? 3 : 0);
  }
}

// A reader is kept out until it was refused as often as the writer, or, if its priority does not grow, as often as the
// writer's was; a writer is not kept out.
TEST(LineMachine, AStarvedWriterKeepsThePageFromReadersUntilTheyMatchIt) {
  for (bool ages : {true, false})
    for (Features on : {Features::all(), Features::all().without(Feature::kMatching)}) {
      LineState s = in(MsiState::kInvalid, LineOp::kWaitExclusive, NodeSet::of(kLower));
      s.priority = 5;
      step(s, kMe, replied(kLower, ReplyKind::kGrantM), on);
      ASSERT_EQ(s.msi, MsiState::kModified);
      LineState writer = s;
      EXPECT_EQ(step(writer, kMe, peer(kLower, RequestKind::kPeerWr), on).post, Post::kHandOver);
      int refusals = 0;
      for (uint8_t priority = 0; refusals < 20; priority += ages) {
        Event e = peer(kLower, RequestKind::kPeerRd);
        e.request.priority = priority;
        Actions a = step(s, kMe, e, on);
        if (a.post == Post::kDowngrade) break;
        ASSERT_EQ(a.reply_count, 1);
        EXPECT_EQ(a.replies[0].kind, ReplyKind::kDropped);
        EXPECT_EQ(a.latch, LatchEnd::kRelease);
        refusals++;
      }
      EXPECT_EQ(refusals, !on.has(Feature::kMatching) ? 0 : ages ? 3 : 6);
      step(s, kMe, done(LatchWord::owned_by(kMe).raw), on);
      EXPECT_EQ(s.bar, 0);
    }
}

TEST(LineMachine, AnswersThatNobodyAskedForChangeNothing) {
  LineState s = idle(MsiState::kShared), before = s;
  step(s, kMe, replied(kLower, ReplyKind::kGrantM));
  EXPECT_EQ(s, before);
}

// coherence.messages-for-incarnation.  A dead node asks for nothing any more.
TEST(LineMachine, WhatTheNextIncarnationAsksOutlivesTheFormerOne) {
  for (const bool back : {true, false}) {
    LineState s = in(MsiState::kInvalid, LineOp::kWaitExclusive, NodeSet::of(kLower).with(kHigher));
    s.parked[0] = from(kLower, RequestKind::kPeerClaim);
    s.parked_count = 1;
    const Actions a = step(s, kMe, {.kind = K::kGone, .from = kLower, .back = back});
    EXPECT_FALSE(a.bad);
    EXPECT_EQ(s.parked_count + a.reply_count, back ? 1 : 0) << "it stays parked, or is answered";
    EXPECT_EQ(s.waiting, NodeSet::of(kHigher));
  }
}

// A claim was parked while this node fetched its share; then a transaction held that, and now one wants to upgrade it.
// The claimer waits for the answer and refuses this node until it has it, and a held share is not given up.
TEST(LineMachine, AClaimerThatWaitsForAHeldShareIsToldBeforeAnUpgrade) {
  LineState s = idle(MsiState::kShared);
  s.parked[0] = from(kHigher, RequestKind::kPeerClaim);
  s.parked_count = 1;
  s.holds_shared = 1;
  const Actions a = step(s, kMe, {.kind = K::kFetchExclusive});
  EXPECT_FALSE(a.bad);
  ASSERT_EQ(a.reply_count, 1);
  EXPECT_EQ(a.replies[0].kind, ReplyKind::kHeld);
  EXPECT_EQ(s.parked_count, 0);
  EXPECT_EQ(s.op, LineOp::kUpgradePosted);
}

TEST(LineMachine, NonsenseIsCaught) {
  LineState s = in(MsiState::kInvalid, LineOp::kWritePosted);
  EXPECT_TRUE(step(s, kMe, done(uint64_t{60} << 58)).bad);
  s = idle(MsiState::kShared);
  EXPECT_TRUE(step(s, kMe, done(0)).bad);
  s = in(MsiState::kInvalid, LineOp::kWritePosted);
  EXPECT_TRUE(step(s, kMe, done(LatchWord::sole_reader(kMe).raw)).bad);  // our own bit, with nothing behind it
}

}  // namespace coherence
