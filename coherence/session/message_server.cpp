#include "coherence/session/message_server.hpp"

#include "coherence/base/os.hpp"
#include "coherence/message/message_counters.hpp"

namespace coherence {

void MessageServer::receive(NodeId from, uint16_t slot) noexcept {
  PageId page;
  PeerRequest request;
  if (!session_.messenger.take_request(from, slot, &request, &page)) return;
  NodeParts& node = session_.node;
  session_.counters.add(received_counter(request.kind));
  node.hot->count(page, PageMessage::kRequestReceived, node.fence);
  Line* line = node.directory ? node.directory->find(page) : nullptr;
  if (!line) return answers_.refuse(request);
  collect(*line);  // an operation whose replies are in should not be waited for: its session may sleep long
  Actions actions;
  bool parked = false, left = false;
  {
    LineState& state = fields(*line).state;
    SpinGuard guard(fields(*line).spin, node.fence);
    // What a dead node asked is answered by no node, once its peers are quiescent (repair.quiesced-first).  One that is
    // in the pool is known here (member.join-seen-by-all).
    const NodeInfo asks = node.members->info(from);
    if (!asks.serves() || uint8_t(asks.incarnation) != request.incarnation) return;
    if (line->page() == page) {
      const bool wanted = state.op == LineOp::kIdle && state.msi != MsiState::kInvalid;
      left = wanted && latches_.promised(*line);
      const bool latched = wanted && !left && driver_.has_room() && LatchTable::try_latch(*line);
      actions = driver_.step_line(*line, {.kind = Event::Kind::kPeer,
                                          .latched = latched,
                                          .may_leave = !latched || driver_.may_leave(*line),
                                          .request = request});
      for (int i = 0; i < state.parked_count; i++) parked |= state.parked[i] == request;
    } else {
      line = nullptr;
    }
  }
  if (!line) return answers_.refuse(request);
  after(*line, driver_.run(*line, actions, 0));
  if (parked) {
    session_.counters.add(Counter::kParked);
    leave_to_worker(*line, left && helping_);  // the latch's holder serves it; a promised waiter may not come
    collect(*line);                            // nor does it wait for an operation that was told to ask later
  } else if (actions.post != Post::kNone) {
    session_.counters.add(helping_ ? Counter::kServedByUnlocker : Counter::kServedByWorker);
  }
  if (left) return;
  if (actions.blocked)
    wait_to_leave(*line, false);
  else
    serve_if_free(*line);
}

void MessageServer::unlocked(Line& line, LocalWord after) noexcept {
  const Next next = latches_.next_after(line, after);
  if (!after.free() || (next == Next::kWaiter && latches_.promise_turn(line))) return;  // others free it again
  if (after.pending()) serve_parked(line, false);
  if (line.word().has_waiters()) LatchTable::wake(line);
}

void MessageServer::serve_if_free(Line& line) noexcept {
  LocalWord w = line.word();
  if (w.pending() && w.free()) serve_parked(line, false);
}

void MessageServer::after(Line& line, Left left) noexcept {
  if (left == Left::kFree) serve_if_free(line);
  if (left != Left::kUnlocked) return;
  const LocalWord w = line.word();
  if (LatchTable::is_wanted(w)) unlocked(line, w);
  if (session_.peers_asked()) help();
}

void MessageServer::serve_beside_window(Line& line) noexcept {
  const LocalWord w = line.word();
  if (!w.pending() || !w.free()) return;
  if (!session_.word_is_near) return leave_to_worker(line, true);
  serve_parked(line, false);
  finish();
}

void MessageServer::ask_for_log(const Line& line) noexcept {
  if (!driver_.logged(line)) session_.node.horizon->request_flush(line.lsn());
}

// Answering may free latches, which comes here again.
void MessageServer::help() noexcept {
  if (helping_ || !session_.node.directory || !session_.messenger.reach_all()) return;
  helping_ = true;
  drain_inbox();
  helping_ = false;
}

void MessageServer::help_now() noexcept {
  help();
  finish();
}

void MessageServer::unlocked_now(Line& line, LocalWord after) noexcept {
  unlocked(line, after);
  finish();
}

void MessageServer::serve_flushed() noexcept {
  if (session_.node.arena->parked_any.load(std::memory_order_relaxed) != 0) drain_parked(false);
  finish();
}

bool MessageServer::reap() noexcept {
  return driver_.reap([this](int place) { complete(place); });
}

// What is parked at lines that become free now is left to the worker, so that this ends.
void MessageServer::finish_all() noexcept {
  finishing_ = true;
  while (poll()) {
  }
  finishing_ = false;
}

}  // namespace coherence
