#include "coherence/line/line_machine.hpp"

#include "coherence/line/own_operation.hpp"
#include "coherence/line/peer_requests.hpp"

namespace coherence {

Actions step(LineState& state, NodeId self, const Event& event, Features on) {
  Actions a;
  const LineStep begin{state, self, on, event.repairable, a};
  OwnOperation own{begin};
  PeerRequests peers{begin};
  switch (event.kind) {
    case Event::Kind::kFetchShared:
      own.fetch(false, false, event.passed_to);
      break;
    case Event::Kind::kFetchCopy:
      own.fetch(false, true);
      break;
    case Event::Kind::kFetchExclusive:
      own.fetch(true);
      break;
    case Event::Kind::kEvict:
      own.evict();
      break;
    case Event::Kind::kReply:
      own.reply(event.from, event.reply, event.passed_to);
      break;
    case Event::Kind::kGone:
      own.gone(event.from, event.back);
      break;
    case Event::Kind::kBatchDone:
      if (!LatchWord{event.old}.well_formed()) a.bad = true;
      if (PeerRequests::has_posted(state.op))
        peers.batch_done(LatchWord{event.old}, event.answered);
      else
        own.batch_done(LatchWord{event.old});
      break;
    case Event::Kind::kPeer:
      peers.request(event);
      break;
    case Event::Kind::kServe:
      if (state.op == LineOp::kIdle)
        peers.serve(event);
      else if (event.latched)
        a.bad = true;
      break;
  }
  a.held_by = state.held_by;
  return a;
}

}  // namespace coherence
