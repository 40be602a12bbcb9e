#include "coherence/session/answers.hpp"

#include "coherence/base/os.hpp"

namespace coherence {

uint32_t Answers::reply(const PeerRequest& request, const Reply& reply) noexcept {
  return session_.messenger.reply(request, reply);
}

void Answers::send(Line& line, const Actions& actions) noexcept {
  for (int i = 0; i < actions.reply_count; i++) {
    const Actions::Reply& r = actions.replies[i];
    if (r.kind == ReplyKind::kHeld && !is_reader(r.to.kind)) line.note_refused_writer();
    const uint64_t passed_to = r.passed_to.valid() ? r.passed_to.value + 1u : 0;
    reply(r.to, {.kind = r.kind,
                 .page = session_.node.frame(line),
                 .more = r.kind == ReplyKind::kHeld ? actions.held_by : passed_to});
  }
}

void Answers::send_early(Line& line, Early* early) noexcept {
  if (!session_.has(Feature::kEarlyAnswers)) return;
  const LineState& state = fields(line).state;
  const LineOp op = state.op;
  const bool grants = op == LineOp::kHandOverPosted || op == LineOp::kDowngradePosted;
  if (grants ? !session_.has(Feature::kForwarding) : op != LineOp::kInvalidatePosted) return;
  early->answered = true;
  const PeerRequest served = state.serving;  // stays until the batch is complete
  if (!grants) {
    reply(served, {.kind = ReplyKind::kDone});
    return;
  }
  if (op == LineOp::kHandOverPosted) return grant_early(line, served, ReplyKind::kGrantM, early);
  PeerRequest readers[kParkedMax];  // stay parked as long, while a claim may come and be parked beside them
  int count = 0;
  {
    SpinGuard guard(fields(line).spin, session_.node.fence);
    for (int i = 0; i < state.parked_count; i++)
      if (is_reader(state.parked[i].kind)) readers[count++] = state.parked[i];
  }
  grant_early(line, served, ReplyKind::kGrantS, early);
  for (int i = 0; i < count; i++) grant_early(line, readers[i], ReplyKind::kGrantS, early);
}

void Answers::grant_early(Line& line, const PeerRequest& request, ReplyKind kind, Early* early) noexcept {
  const uint32_t landing = reply(request, {.kind = kind, .page = session_.node.frame(line), .in_flight = true});
  if (landing != Messenger::kNowhere) early->grant[early->grants++] = {request.from, request.incarnation, landing};
}

void Answers::complete(const Early& early) noexcept {
  for (int i = 0; i < early.grants; i++)
    session_.messenger.grant_complete(NodeId{early.grant[i].to}, early.grant[i].incarnation, early.grant[i].line);
}

}  // namespace coherence
