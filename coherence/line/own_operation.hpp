// OwnOperation: what a node does to get a page, or to give it up, for its own sake: attempts at the word, what the word
// says, requests to peers, and their replies.
#pragma once

#include "coherence/line/line_step.hpp"

namespace coherence {

struct OwnOperation : LineStep {
  static constexpr int kHintsMax = 4;            // then the word is looked at: hints may go in a circle
  static constexpr int kUpgradeFailuresMax = 2;  // then the share is given up, and the page fetched as from I

  // `first`: the node that took the page a moment ago, if any.
  void fetch(bool exclusive, bool copy_will_do = false, NodeId first = NodeId()) {
    if (s.op != LineOp::kIdle) a.bad = true;
    s.failures = s.priority = 0;
    s.passed_to = NodeId();
    s.copy_will_do = copy_will_do;
    if (!exclusive) {
      if (s.msi != MsiState::kInvalid) a.bad = true;
      if (first.valid() && first != self && on.has(Feature::kJoin)) return join(first);
      return post(LineOp::kReadPosted, Post::kAddReader);
    }
    if (s.msi == MsiState::kInvalid) return post(LineOp::kWritePosted, Post::kTake);
    if (s.msi != MsiState::kShared) a.bad = true;
    answer_held();
    if (!on.has(Feature::kUpgrade) && may_fall_back()) return fall_back();
    post(LineOp::kUpgradePosted, Post::kUpgrade);
  }
  void join(NodeId first) {
    s.joins = true;
    s.hints = 1;
    ask_to_read(first);
  }
  void evict() {
    if (s.op != LineOp::kIdle || s.msi == MsiState::kInvalid || s.parked_count || s.holds_shared || s.holds_exclusive)
      a.bad = true;
    post(LineOp::kReleasePosted, s.msi == MsiState::kModified ? Post::kRelease : Post::kDropShare);
  }

  void read_done(LatchWord old) {  // also of a probe
    if (s.joins) {                 // the asked node is gone, perhaps after it has added our bit
      s.joins = false;
      if (!old.readers().has(self)) return post(LineOp::kReadPosted, Post::kAddReader);
    }
    if (!old.has_owner()) return finish(MsiState::kShared, LatchEnd::kToShared);
    if (old.owner() == self) a.bad = true;
    if (repairable.has(old.owner())) return take_over(LineOp::kTakeReadPosted, old);
    answer_parked(ReplyKind::kDropped);  // a claim's: what it met was a pending reader
    ask_to_read(old.owner());            // the bit stays, as a pending reader
  }
  void ask_to_read(NodeId owner) {
    const RequestKind kind = s.joins          ? RequestKind::kPeerJoin
                             : s.copy_will_do ? RequestKind::kPeerCopy
                                              : RequestKind::kPeerRd;
    ask(kind, NodeSet::of(owner), LineOp::kWaitShared);
  }
  void ask_to_write(NodeId owner) { ask(RequestKind::kPeerWr, NodeSet::of(owner), LineOp::kWaitExclusive); }
  void write_done(LatchWord old) {
    if (old == LatchWord::free()) return finish(MsiState::kModified, LatchEnd::kToCaller);
    if (names_dead(old)) return take_over(LineOp::kTakeWritePosted, old);
    if (!old.has_owner() && on.has(Feature::kClaim)) return claim(old);
    if (!old.has_owner()) return ask(RequestKind::kPeerInv, old.readers(), LineOp::kWaitExclusive);
    if (old.owner() == self) return post(LineOp::kReclaimPosted, Post::kReadPage);  // granted by a node now dead
    ask_to_write(old.owner());
  }
  void upgrade_done(LatchWord old) {
    if (old == LatchWord::sole_reader(self)) return finish(MsiState::kModified, LatchEnd::kToCaller);
    if (!old.readers().has(self)) a.bad = true;
    if (names_dead(old)) return take_over(LineOp::kTakeWritePosted, old);
    const bool claims = on.has(Feature::kClaim);
    if (s.failures < kUpgradeFailuresMax) s.failures++;
    const bool given_up = old.has_owner() || (!claims && s.failures == kUpgradeFailuresMax);
    if (may_fall_back() && (given_up || kept_for_lower())) return fall_back();
    if (!old.has_owner() && claims) return claim(old);
    const NodeSet others = old.has_owner() ? NodeSet::of(old.owner()) : old.readers().without(self);
    ask(RequestKind::kPeerInv, others, LineOp::kWaitUpgrade);
    refuse_higher();
  }
  // --- what a dead node had ------------------------------------------------------------------------------------------
  bool names_dead(LatchWord word) const {
    return word.has_owner() ? repairable.has(word.owner()) : (word.readers().bits & repairable.bits) != 0;
  }
  // Takes the dead node's place in the word as it was a moment ago (repair.take-over-by-exact-word): dead readers' bits
  // and our own pending-reader bit go.
  void take_over(LineOp op, LatchWord word) {
    s.taken_from = word.owner();
    s.sharers = word.readers();
    a.expects = word.raw;
    a.over = others_alive();
    post(op, Post::kTakeOver);
  }
  NodeSet others_alive() const { return NodeSet{s.sharers.bits & ~repairable.bits}.without(self); }
  // We own the page.  A bit that is left is a share only if no redo of the dead node is newer than the pool's page
  // (repair.share-means-pool-is-newest): so a reader may write the page back and share, and a writer asks the sharers
  // as a claimer does.
  void take_over_done(LatchWord old) {
    const bool reads = s.op == LineOp::kTakeReadPosted, shares = s.msi == MsiState::kShared;
    const LatchWord expected =
        s.taken_from.valid() ? LatchWord::claimed_by(s.taken_from, s.sharers) : LatchWord::shared_by(s.sharers);
    s.taken_from = NodeId();
    s.sharers = others_alive();  // one that died since has left its bit, and is asked for nothing
    if (old != expected && reads) return post(LineOp::kProbePosted, Post::kProbe);
    if (old != expected) {
      if (!old.has_owner() && old.readers().without(self).empty()) return claim(old);  // ours now, or free
      return shares ? upgrade_done(old) : write_done(old);
    }
    answer_parked(ReplyKind::kDropped);
    if (reads) return post(LineOp::kRepairedPosted, Post::kDowngrade);
    if (s.sharers.empty()) return finish(MsiState::kModified, LatchEnd::kToCaller);
    ask(RequestKind::kPeerClaim, s.sharers, LineOp::kWaitClaimed);
  }
  // Claims the word as it was a moment ago (coherence.claim-then-ask).  The CAS fails where a node has come or gone
  // since; the next expects what this one found.
  void claim(LatchWord word) {
    if (s.msi == MsiState::kInvalid && word.readers().has(self)) a.bad = true;
    s.sharers = word.readers().without(self);
    if (!s.sharers.empty()) {
      a.over = s.sharers;
      return post(LineOp::kClaimPosted, Post::kClaim);
    }
    if (s.msi == MsiState::kShared) return post(LineOp::kUpgradePosted, Post::kUpgrade);
    post(LineOp::kWritePosted, Post::kTake);
  }
  void claim_done(LatchWord old) {
    const bool shares = s.msi == MsiState::kShared;
    if (old == LatchWord::shared_by(shares ? s.sharers.with(self) : s.sharers)) {
      answer_parked(ReplyKind::kDropped);
      return ask(RequestKind::kPeerClaim, s.sharers, LineOp::kWaitClaimed);
    }
    if (!old.has_owner() && old.readers().without(self).empty()) return claim(old);  // the sharers have gone
    shares ? upgrade_done(old) : write_done(old);
  }
  void unclaim_done() {
    for (int i = s.parked_count - 1; i >= 0; i--)
      if (s.parked[i].kind != RequestKind::kPeerClaim) {  // a claim is the next claimer's, of our share
        answer(s.parked[i], ReplyKind::kDropped);
        unpark(i);
      }
    finish(s.msi, LatchEnd::kRelease, Outcome::kHeld);
  }
  // Requests that were parked before this upgrade began.
  void refuse_higher() {
    for (int i = s.parked_count - 1; i >= 0; i--)
      if (!yields_to(s.parked[i])) {
        answer(s.parked[i], ReplyKind::kDropped);
        unpark(i);
      }
  }
  // A node whose transaction holds the share keeps it (coherence.held-until-end): it asks again, and tells others that
  // the page is held.
  bool may_fall_back() const { return s.holds_shared == 0; }
  void fall_back() { post(LineOp::kFallbackPosted, Post::kDropShare); }
  void fallback_done(LatchWord old) {
    s.msi = MsiState::kInvalid;
    s.failures = 0;
    answer_parked(ReplyKind::kDone);
    const LatchWord now = old.plus(LatchWord::drop_reader(self));
    if (now == LatchWord::free()) return post(LineOp::kWritePosted, Post::kTake);
    write_done(now);
  }

  void batch_done(LatchWord old) {
    switch (s.op) {
      case LineOp::kReadPosted:
      case LineOp::kProbePosted:
        return read_done(old);
      case LineOp::kWritePosted:
        return write_done(old);
      case LineOp::kReclaimPosted:
        return finish(MsiState::kModified, LatchEnd::kToCaller);
      case LineOp::kUpgradePosted:
        return upgrade_done(old);
      case LineOp::kFallbackPosted:
        return fallback_done(old);
      case LineOp::kClaimPosted:
        return claim_done(old);
      case LineOp::kUnclaimPosted:
        return unclaim_done();
      case LineOp::kTakeReadPosted:
      case LineOp::kTakeWritePosted:
        return take_over_done(old);
      case LineOp::kRepairedPosted:
        return finish(MsiState::kShared, LatchEnd::kToShared);
      case LineOp::kReleasePosted:
        return finish(MsiState::kInvalid, LatchEnd::kToCaller);
      case LineOp::kWithdrawPosted:
        return withdraw_done();
      default:
        a.bad = true;
    }
  }

  // --- replies -----------------------------------------------------------------------------------------------------
  void reply(NodeId from, ReplyKind kind, NodeId passed_to) {
    if (!s.waiting.has(from)) return;
    s.waiting = s.waiting.without(from);
    if (kind != ReplyKind::kDropped && kind != ReplyKind::kDone) s.granted = kind;
    if (!s.waiting.empty()) return;
    const bool follow = passed_to.valid() && passed_to != self && s.hints < kHintsMax;
    s.hints = follow ? s.hints + 1 : 0;
    round_complete(follow ? passed_to : NodeId());
  }
  void round_complete(NodeId passed_to) {
    const bool asked_again = s.op != LineOp::kWaitClaimed;
    if (s.priority < 255 && on.has(Feature::kAgeing) && asked_again) s.priority++;
    switch (s.op) {
      case LineOp::kWaitShared:  // a grant whose page is in the pool: the share stands, so that the probe reads it
        if (s.granted == ReplyKind::kGrantS) return finish(MsiState::kShared, LatchEnd::kToShared);
        if (s.joins && s.granted != ReplyKind::kGrantSInPool) return not_joined(passed_to);
        s.joins = false;
        answer_parked(ReplyKind::kDropped);  // a claim's: no grant is on its way, and whether we share is seen next
        if (s.granted == ReplyKind::kCopy || s.granted == ReplyKind::kHeld)
          return post(LineOp::kWithdrawPosted, Post::kDropShare);
        if (passed_to.valid()) return ask_to_read(passed_to);
        return post(LineOp::kProbePosted, Post::kProbe);
      case LineOp::kWaitExclusive:
        if (s.granted == ReplyKind::kGrantM) return finish(MsiState::kModified, LatchEnd::kToCaller);
        if (s.granted == ReplyKind::kGrantMInPool) return post(LineOp::kReclaimPosted, Post::kReadPage);
        if (s.granted == ReplyKind::kHeld) return finish(MsiState::kInvalid, LatchEnd::kRelease, Outcome::kHeld);
        if (passed_to.valid()) return ask_to_write(passed_to);
        return post(LineOp::kWritePosted, Post::kTake);
      case LineOp::kWaitUpgrade:
        if (s.granted == ReplyKind::kHeld) return finish(MsiState::kShared, LatchEnd::kRelease, Outcome::kHeld);
        if (may_fall_back() && kept_for_lower()) return fall_back();
        return post(LineOp::kUpgradePosted, Post::kUpgrade);
      case LineOp::kWaitClaimed:
        if (s.granted == ReplyKind::kHeld)
          return post(LineOp::kUnclaimPosted, s.msi == MsiState::kShared ? Post::kDowngrade : Post::kRelease);
        return finish(MsiState::kModified, LatchEnd::kToCaller);
      default:
        a.bad = true;
    }
  }
  // A node that does not grant has not added our bit (coherence.reader-joins-taker).
  void not_joined(NodeId passed_to) {
    answer_parked(ReplyKind::kDropped);
    if (s.granted == ReplyKind::kHeld) return finish(MsiState::kInvalid, LatchEnd::kRelease, Outcome::kHeld);
    if (passed_to.valid()) return ask_to_read(passed_to);
    s.joins = false;
    post(LineOp::kReadPosted, Post::kAddReader);
  }
  void withdraw_done() {
    const bool copied = s.granted == ReplyKind::kCopy;
    finish(MsiState::kInvalid, copied ? LatchEnd::kToCaller : LatchEnd::kRelease,
           copied ? Outcome::kCopied : Outcome::kHeld);
  }
  // Of a node that has left nothing is parked: it waits for its answers first (coherence.messages-for-incarnation). The
  // driver counts it as gone before it takes what the next incarnation asks; nothing here depends on that.
  void gone(NodeId from, bool back) {
    for (int i = s.parked_count - 1; i >= 0 && !back; i--)
      if (s.parked[i].from == from.value) unpark(i);
    if (s.joins && s.waiting.has(from)) {  // the word says whether it has added our bit
      s.waiting = NodeSet();
      answer_parked(ReplyKind::kDropped);
      return post(LineOp::kProbePosted, Post::kProbe);
    }
    reply(from, ReplyKind::kDropped, NodeId());
  }

  // --- parts of the above
  // ----------------------------------------------------------------------------------------------
  void ask(RequestKind kind, NodeSet peers, LineOp wait) {
    s.op = wait;
    s.granted = ReplyKind::kNone;
    s.waiting = peers;
    a.send = kind;
    a.send_to = peers;
    if (peers.empty()) a.bad = true;  // the word named no node to ask
  }
  void finish(MsiState msi, LatchEnd latch, Outcome outcome = Outcome::kOwned) {
    const bool starved = msi == MsiState::kModified && s.priority >= kStarvedFrom;
    s.bar = starved && on.has(Feature::kMatching) ? s.priority : 0;
    s.msi = msi;
    s.op = LineOp::kIdle;
    s.failures = s.priority = 0;
    s.granted = ReplyKind::kNone;
    s.copy_will_do = s.joins = false;
    a.finished = true;
    a.outcome = outcome;
    a.latch = latch;
  }
  bool kept_for_lower() const {
    for (int i = 0; i < s.parked_count; i++)
      if (yields_to(s.parked[i])) return true;
    return false;
  }
  // An upgrade must not leave that to its end: it may wait for the very node that waits for this answer.
  void answer_held() {
    for (int i = s.parked_count - 1; i >= 0; i--)
      if (held_against(s.parked[i].kind)) answer(s.parked[i], ReplyKind::kHeld), unpark(i);
  }
};

}  // namespace coherence
