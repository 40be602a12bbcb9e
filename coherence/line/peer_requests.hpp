// PeerRequests: what a node does with requests of its peers: it answers, parks or serves them.
#pragma once

#include "coherence/line/line_step.hpp"

namespace coherence {

struct PeerRequests : LineStep {
  // Whether the batch that is posted serves a peer.
  static constexpr bool has_posted(LineOp op) {
    return op == LineOp::kHandOverPosted || op == LineOp::kDowngradePosted || op == LineOp::kInvalidatePosted ||
           op == LineOp::kGiveUpPosted;
  }

  void request(const Event& e) {
    const PeerRequest& r = e.request;
    switch (response_to(r)) {
      case Response::kHold:
        answer(r, ReplyKind::kHeld);
        break;
      case Response::kPark:
        return park(r);
      case Response::kServe:
        park(r);
        return serve(e);
      default:
        answer(r, ReplyKind::kDropped);
    }
    if (e.latched) a.latch = LatchEnd::kRelease;
  }
  Response response_to(const PeerRequest& r) {
    if (held_against(r.kind)) return Response::kHold;  // whatever is under way
    const Response found = response_in(phase_of(s), r.kind);
    switch (found) {
      case Response::kServeMatched:
        if (r.priority >= s.bar || s.holds_exclusive) return Response::kServe;
        s.bar--;  // so that it ends, whether or not priorities grow there
        return Response::kRefuse;
      case Response::kParkLower:
        return yields_to(r) ? Response::kPark : Response::kRefuse;
      case Response::kParkUnlessAsked:
        return s.waiting.has(NodeId{r.from}) ? Response::kRefuse : Response::kPark;
      default:
        return found;
    }
  }
  bool concerns_us(RequestKind kind) const { return concerns(s.msi, kind); }
  bool answer_by_copy(const PeerRequest& r, const Event& e) const {
    return r.kind == RequestKind::kPeerCopy && s.holds_exclusive && e.latched && e.may_leave;
  }
  // Posts the hand-over of the most urgent parked request, if the latch is ours; answers those that get nothing, or a
  // copy.  Either may be forbidden for now (coherence.log-first, coherence.early-grant-bound).
  void serve(const Event& e) {
    for (int i = s.parked_count - 1; i >= 0; i--) {
      const ReplyKind kind = !concerns_us(s.parked[i].kind)   ? ReplyKind::kDropped
                             : held_against(s.parked[i].kind) ? ReplyKind::kHeld
                             : answer_by_copy(s.parked[i], e) ? ReplyKind::kCopy
                                                              : ReplyKind::kNone;
      if (kind == ReplyKind::kNone) continue;
      answer(s.parked[i], kind);
      unpark(i);
    }
    if (!e.latched) return;
    a.blocked = s.parked_count > 0 && !e.may_leave;
    int best = -1;
    for (int i = 0; i < s.parked_count && !a.blocked; i++)
      if (best < 0 || s.parked[i].priority > s.parked[best].priority) best = i;
    if (best < 0) {
      a.latch = LatchEnd::kRelease;
      return;
    }
    s.serving = s.parked[best];
    unpark(best);
    if (s.msi == MsiState::kShared) {
      if (s.serving.kind == RequestKind::kPeerClaim) s.passed_to = NodeId{s.serving.from};
      return post(LineOp::kInvalidatePosted, Post::kDropShare);
    }
    const bool writer = s.serving.kind == RequestKind::kPeerWr;
    if (!on.has(Feature::kHandOver) && (writer || !s.holds_shared)) return post(LineOp::kGiveUpPosted, Post::kRelease);
    a.to = NodeId{s.serving.from};
    if (writer) {
      s.passed_to = a.to;
      if (on.has(Feature::kEarlyAnswers) && on.has(Feature::kHints)) answer_parked(ReplyKind::kDropped);
      return post(LineOp::kHandOverPosted, Post::kHandOver);
    }
    s.sharers = a.over = joining(s);
    post(LineOp::kDowngradePosted, Post::kDowngrade);
  }
  void served(ReplyKind kind, bool answered) {
    if (!answered) answer(s.serving, kind);
    s.serving = PeerRequest();
    s.op = LineOp::kIdle;
    s.bar = 0;
  }
  ReplyKind grant_s() const { return on.has(Feature::kForwarding) ? ReplyKind::kGrantS : ReplyKind::kGrantSInPool; }
  void hand_over_done(bool answered) {
    s.msi = MsiState::kInvalid;
    served(on.has(Feature::kForwarding) ? ReplyKind::kGrantM : ReplyKind::kGrantMInPool, answered);
    answer_parked(ReplyKind::kDropped);
    a.latch = LatchEnd::kRelease;
  }
  // The owner field is gone: every bit of the old word is a share now, and those that we added are, so every parked
  // reader is granted with the first.  None has come since the batch was posted.
  void downgrade_done(LatchWord old, bool answered) {
    s.msi = MsiState::kShared;
    served(grant_s(), answered);
    for (int i = s.parked_count - 1; i >= 0; i--)
      if (is_reader(s.parked[i].kind)) {
        const NodeId from{s.parked[i].from};
        const bool shares = old.readers().has(from) || s.sharers.has(from);
        if (!answered) answer(s.parked[i], shares ? grant_s() : ReplyKind::kDropped);
        unpark(i);
      }
    a.latch = LatchEnd::kRelease;
  }
  void gone_done(bool answered) {
    s.msi = MsiState::kInvalid;
    served(ReplyKind::kDone, answered);
    answer_parked(ReplyKind::kDone);
    a.latch = LatchEnd::kRelease;
  }

  void batch_done(LatchWord old, bool answered) {
    switch (s.op) {
      case LineOp::kHandOverPosted:
        return hand_over_done(answered);
      case LineOp::kDowngradePosted:
        return downgrade_done(old, answered);
      default:
        return gone_done(answered);
    }
  }
};

}  // namespace coherence
