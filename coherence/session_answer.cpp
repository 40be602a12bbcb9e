// What a Session does for peers: takes their requests, serves what is parked, and answers.
#include "coherence/base/os.hpp"
#include "coherence/base/racy_copy.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/message/message_counters.hpp"
#include "coherence/session.hpp"

namespace coherence {
namespace {

constexpr int kServeRoundsMax = 8;  // of one unlock; the worker goes on

}  // namespace

void Session::answer(Line& line, const Actions& actions) noexcept {
  for (int i = 0; i < actions.reply_count; i++) {
    const Actions::Reply& r = actions.replies[i];
    const uint64_t passed_to = r.passed_to.valid() ? r.passed_to.value + 1u : 0;
    reply(r.to, r.kind, node_.frame(line), r.kind == ReplyKind::kHeld ? actions.held_by : passed_to);
  }
}

void Session::reply(const PeerRequest& request, ReplyKind kind, const std::byte* page, uint64_t more) noexcept {
  if (PeerArena* there = peer(NodeId{request.from})) deliver(*there, request, kind, page, more);
}

// I20.  Whom the posted batch serves need not wait until it is complete.
void Session::answer_early(Line& line, Posted* posted) noexcept {
  if (!node_.features_.has(Feature::kEarlyAnswers)) return;
  const LineOp op = line.state_.op;
  const bool grants = op == LineOp::kHandOverPosted || op == LineOp::kDowngradePosted;
  if (grants ? !node_.features_.has(Feature::kForwarding) : op != LineOp::kInvalidatePosted) return;
  posted->answered = true;
  const PeerRequest served = line.state_.serving;  // stays until the batch is complete
  if (!grants) return reply(served, ReplyKind::kDone, nullptr, 0);
  if (op == LineOp::kHandOverPosted) return grant_early(line, served, ReplyKind::kGrantM, posted);
  PeerRequest readers[kParkedMax];  // stay parked as long, while a claim may come and be parked beside them
  int count = 0;
  {
    SpinGuard guard(line.spin_, node_.fence_);
    for (int i = 0; i < line.state_.parked_count; i++)
      if (is_reader(line.state_.parked[i].kind)) readers[count++] = line.state_.parked[i];
  }
  grant_early(line, served, ReplyKind::kGrantS, posted);
  for (int i = 0; i < count; i++) grant_early(line, readers[i], ReplyKind::kGrantS, posted);
}

void Session::grant_early(Line& line, const PeerRequest& request, ReplyKind kind, Posted* posted) noexcept {
  PeerArena* there = peer(NodeId{request.from});
  if (!there) return;
  RequestSlot* s = there->slot(request.slot);
  VERIFY(s);
  Line* landing = there->line(s->line.load(std::memory_order_relaxed));
  VERIFY(landing);
  landing->grant_in_flight_.store(true, std::memory_order_relaxed);  // published by the reply
  posted->granted[posted->grants++] = {NodeId{request.from}, landing};
  deliver(*there, request, kind, node_.frame(line), 0);
}

// The batch is complete: the word names the node, and its line may leave it.  It could not before, so it is the same
// line still.
void Session::confirm_grant(NodeId node, Line& landing) noexcept {
  PeerArena* there = peer(node);
  landing.grant_in_flight_.store(false, std::memory_order_seq_cst);  // one of this and wait_to_leave() sees the other
  if (there && LocalWord{landing.latch_.load(std::memory_order_seq_cst)}.pending()) ring(there->header());
}

void Session::deliver(PeerArena& there, const PeerRequest& request, ReplyKind kind, const std::byte* page,
                      uint64_t more) noexcept {
  RequestSlot* s = there.slot(request.slot);
  VERIFY(s);
  if (carries_page(kind)) {
    node_.hot_->count(PageId{s->page.load(std::memory_order_relaxed)}, PageMessage::kPageSent, node_.fence_);
    std::byte* frame = there.frame(s->line.load(std::memory_order_relaxed));
    VERIFY(frame);
    racy_copy(frame, page, kPageSize);
  }
  counters_.add(reply_counter(kind, true));
  const ReplyWord word = ReplyWord::of(request.id, kind, more);
  s->reply[node_.id_.value].store(word.raw, std::memory_order_release);  // pairs with collect()
  s->bell.fetch_add(1, std::memory_order_seq_cst);
  if (s->sleeping.load(std::memory_order_seq_cst)) futex_wake(s->bell, 1);  // pairs with await()
  if (s->state.load(std::memory_order_seq_cst) == SlotState::kAbandoned) ring(there.header());
}

// Takes what a peer's slot asks of us; from then on it stays as it is until we reply.  False: nothing (any more), or
// another of our processes has it (I15).
bool Session::take_request(RequestSlot& s, NodeId from, uint16_t slot, PeerRequest* request,
                           PageId* page) const noexcept {
  std::atomic<uint64_t>& word = s.reply[node_.id_.value];
  ReplyWord asked{word.load(std::memory_order_relaxed)};
  if (!asked.is_open()) return false;
  const ReplyWord taken = ReplyWord::taken(asked.serial());
  if (!word.compare_exchange_strong(asked.raw, taken.raw, std::memory_order_acquire)) return false;  // fill_slot()
  *page = PageId{s.page.load(std::memory_order_relaxed)};
  *request = {from.value,
              s.kind.load(std::memory_order_relaxed),
              s.priority.load(std::memory_order_relaxed),
              0,
              slot,
              uint16_t(asked.serial())};
  return true;
}

void Session::receive(NodeId from, uint16_t slot) noexcept {
  PeerArena* there = peer(from);
  RequestSlot* s = there ? there->slot(slot) : nullptr;
  if (!s) return;
  PageId page;
  PeerRequest request;
  if (!take_request(*s, from, slot, &request, &page)) return counters_.add(Counter::kOutdated);
  counters_.add(received_counter(request.kind));
  node_.hot_->count(page, PageMessage::kRequestReceived, node_.fence_);
  Line* line = node_.directory_ ? node_.directory_->find(page) : nullptr;
  if (!line) return reply(request, ReplyKind::kDropped, nullptr, 0);
  collect(*line);  // an operation whose replies are in should not be waited for: its owner may sleep long
  Actions actions;
  bool parked = false, left = false;
  {
    SpinGuard guard(line->spin_, node_.fence_);
    if (line->page() == page) {
      LineState& state = line->state_;
      const bool wanted = state.op == LineOp::kIdle && state.msi != MsiState::kInvalid;
      left = wanted && promised(*line);
      const bool latched = wanted && !left && try_latch(*line);
      actions = step_line(*line, {.kind = Event::Kind::kPeer,
                                  .latched = latched,
                                  .may_leave = !latched || may_leave(*line),
                                  .request = request});
      for (int i = 0; i < state.parked_count; i++) parked |= state.parked[i] == request;
    } else {
      line = nullptr;
    }
  }
  if (!line) return reply(request, ReplyKind::kDropped, nullptr, 0);
  run(*line, actions, 0);
  if (parked) {
    counters_.add(Counter::kParked);
    leave_to_worker(*line, left && helping_);  // who has the latch serves it; who was promised it may not come
    collect(*line);                            // nor does it wait for an operation that was told to ask later
  } else if (actions.post != Post::kNone) {
    counters_.add(helping_ ? Counter::kServedByUnlocker : Counter::kServedByWorker);
  }
  if (left) return;
  if (actions.blocked)
    wait_to_leave(*line, false);
  else
    serve_if_free(*line);
}

void Session::serve_parked(Line& line, bool worker) noexcept {
  if (!worker && !node_.reach_peers()) return leave_to_worker(line, true);
  for (int i = 0; i < kServeRoundsMax; i++) {
    Actions actions;
    {
      SpinGuard guard(line.spin_, node_.fence_);
      if (line.state_.op != LineOp::kIdle || line.state_.parked_count == 0) return;
      if (!try_latch(line)) return;  // whoever has it will see `pending`
      actions = step_line(line, {.kind = Event::Kind::kServe, .latched = true, .may_leave = may_leave(line)});
    }
    if (actions.post != Post::kNone) counters_.add(worker ? Counter::kServedByWorker : Counter::kServedByUnlocker);
    run(line, actions, 0);
    if (actions.post == Post::kNone && actions.blocked) return wait_to_leave(line, !worker);
    LocalWord w = line.word();
    if (!w.pending() || !w.free()) return;
  }
  leave_to_worker(line, true);
}

// I9, I20.  REQUIRES: a latch on the line.
bool Session::may_leave(const Line& line) noexcept {
  return !line.grant_in_flight() && (line.state_.msi != MsiState::kModified || logged(line));
}

bool Session::logged(const Line& line) noexcept { return !node_.horizon_ || line.lsn() <= node_.horizon_->flushed(); }

void Session::ask_for_log(const Line& line) noexcept {
  if (!logged(line)) node_.horizon_->request_flush(line.lsn());
}

void Session::wait_to_leave(Line& line, bool ring) noexcept {
  leave_to_worker(line, false);
  if (line.grant_in_flight()) return;     // who confirms it sees `pending`, and rings
  if (logged(line)) return node_.ring();  // it was confirmed meanwhile
  counters_.add(Counter::kFlushWaits);
  node_.horizon_->request_flush(line.lsn());
  if (ring) node_.ring();
}

void Session::leave_to_worker(Line& line, bool ring) noexcept {
  uint32_t i = node_.index_of(line);
  node_.parked_[i / 64].fetch_or(uint64_t{1} << i % 64, std::memory_order_acq_rel);
  node_.arena_->parked_any.store(1, std::memory_order_seq_cst);
  if (ring) node_.ring();
}

}  // namespace coherence
