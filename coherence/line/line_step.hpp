// LineStep: one step of a line's state machine: the state, and the actions as they gather.  It has what both parts of
// the machine do, a node's own operation (OwnOperation) and its peers' requests (PeerRequests): post, answer, park.
#pragma once

#include "coherence/line/line_machine.hpp"
#include "coherence/line/parked_requests.hpp"
#include "coherence/line/request_table.hpp"

namespace coherence {

struct LineStep {
  LineState& s;
  const NodeId self;
  const Features on;
  const NodeSet repairable;
  Actions& a;

  void post(LineOp op, Post what) {
    s.op = op;
    s.hints = 0;
    a.post = what;
  }
  void answer(const PeerRequest& to, ReplyKind kind) {
    a.replies[a.reply_count++] = {to, kind, kind == ReplyKind::kDropped ? hint(to, whereabouts()) : NodeId()};
  }
  // The page is here, and the queue is full.
  void refuse(const PeerRequest& r) { a.replies[a.reply_count++] = {r, ReplyKind::kDropped, hint(r, self)}; }
  NodeId hint(const PeerRequest& to, NodeId where) const {
    const bool asks_owner = to.kind != RequestKind::kPeerInv && to.kind != RequestKind::kPeerClaim;
    return asks_owner && on.has(Feature::kHints) ? where : NodeId();
  }
  // The node that is asked for the page, or got it last.
  NodeId whereabouts() const {
    const bool asks = s.op == LineOp::kWaitShared || s.op == LineOp::kWaitExclusive;
    return asks ? s.waiting.first() : s.passed_to;
  }
  void unpark(int i) { coherence::unpark(s, i); }
  void park(const PeerRequest& r) {
    const PeerRequest without_place = coherence::park(s, r);
    if (without_place.kind != RequestKind::kNone) refuse(without_place);
  }
  // The share (or everything) is gone from the word: requesters that asked for that are done, the others look again.
  void answer_parked(ReplyKind to_writers) {
    for (int i = 0; i < s.parked_count; i++) {
      answer(s.parked[i], is_reader(s.parked[i].kind) ? ReplyKind::kDropped : to_writers);
      s.parked[i] = PeerRequest();
    }
    s.parked_count = 0;
  }
  // Of two upgraders the lower id wins (else both would wait for each other for ever); without the tie-break, neither.
  // A node that has claimed the word has won.
  bool yields_to(const PeerRequest& r) const {
    if (r.kind == RequestKind::kPeerClaim) return true;
    return on.has(Feature::kTieBreak) && !is_reader(r.kind) && r.from < self.value;
  }
  bool held_against(RequestKind kind) const { return coherence::held_against(s, kind); }
};

}  // namespace coherence
