// A node leaves in order, and joins again: what was said to its former incarnation, or by it, is not for the next one
// (coherence.messages-for-incarnation).
#include "explorer.hpp"

namespace coherence::model {

// As Node::leave(): what it had is given back, its requests are answered, and what it had to say has arrived.
void Explorer::leave(const State& s0, int n) {
  const NodeM& x = s0.node[n];
  if (v.leaver != n + 1 || x.left || x.msi != MsiState::kInvalid || x.op != LineOp::kIdle || x.latch != kFree ||
      x.want != kNothing || x.parked_count || x.undo || x.batch.post != Post::kNone || x.grant_in_flight)
    return;
  for (int j = 0; j < kNodes; j++)
    if (s0.reply[n][j].kind || s0.request[n][j]) return;
  State s = s0;
  s.node[n] = NodeM{};
  s.node[n].left = 1;
  for (int j = 0; j < kNodes; j++) {
    if (s.request[j][n]) s.request[j][n] |= kFormerRequest;
    s.request_again[j][n] = 0;
    if (s.reply_again[j][n]) s.reply_again[j][n] |= kFormerReply;
  }
  emit(s, kEnvironment, "leaves, and joins again");
}

// A request that was filled in for an incarnation that has left is answered by no node.
void Explorer::count_gone(const State& s0, int n) {
  for (int j = 0; j < kNodes; j++) {
    const uint8_t asked = s0.request[n][j];
    if (!(asked & kFormerRequest) || (asked & kGivenUp) || !(s0.node[n].waiting >> j & 1)) continue;
    State s = s0;
    s.request[n][j] = v.former_request_taken ? asked | kGivenUp : 0;  // else it has no effect when it arrives
    event(s, n, {.kind = Event::Kind::kGone, .from = id_of(j), .back = true});
    emit(s, fair(n, kGone), "counts the incarnation that left as gone");
  }
}

// It arrives at the next incarnation.  Before its sender has counted the former one as gone, that is still to come.
void Explorer::late_request(const State& s0, int from, int n) {
  const uint8_t arrived = s0.request[from][n];
  if (!v.former_request_taken || !(arrived & kGivenUp) || s0.reply[n][from].kind) return;
  State s = s0;
  s.request[from][n] = 0;
  take(s, from, n, uint8_t(arrived & ~(kFormerRequest | kGivenUp)));
  emit(s, fair(n, kRequest + from), "a request to the former incarnation is taken");
}

}  // namespace coherence::model
