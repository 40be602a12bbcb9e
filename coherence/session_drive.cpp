// The protocol side of a Session: gives step() its events and does what it says.  Any process of the node may drive a
// line's operation; the spinlock orders the steps, a posted batch or the X latch keeps the rest away.
#include <bit>

#include "coherence/base/os.hpp"
#include "coherence/base/racy_copy.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/session.hpp"

namespace coherence {
namespace {

constexpr int kRangesMax = 8;       // of a write-back; a page changed in more places is written whole
constexpr int kServeRoundsMax = 8;  // of one unlock; the worker goes on

Counter sent_counter(RequestKind kind) {
  return is_reader(kind)                ? Counter::kPeerRdSent
         : kind == RequestKind::kPeerWr ? Counter::kPeerWrSent
                                        : Counter::kPeerInvSent;
}
Counter received_counter(RequestKind kind) {
  return is_reader(kind)                ? Counter::kPeerRdReceived
         : kind == RequestKind::kPeerWr ? Counter::kPeerWrReceived
                                        : Counter::kPeerInvReceived;
}
Counter reply_counter(ReplyKind kind, bool sent) {
  switch (kind) {
    case ReplyKind::kGrantS:
    case ReplyKind::kGrantSInPool:
      return sent ? Counter::kGrantSSent : Counter::kGrantSReceived;
    case ReplyKind::kGrantM:
    case ReplyKind::kGrantMInPool:
      return sent ? Counter::kGrantMSent : Counter::kGrantMReceived;
    case ReplyKind::kCopy:
      return sent ? Counter::kCopySent : Counter::kCopyReceived;
    case ReplyKind::kHeld:
      return sent ? Counter::kHeldSent : Counter::kHeldReceived;
    case ReplyKind::kDone:
      return sent ? Counter::kDoneSent : Counter::kDoneReceived;
    default:
      return sent ? Counter::kDroppedSent : Counter::kDroppedReceived;
  }
}

uint16_t round_of(const RequestSlot& s) { return uint16_t(s.serial.load(std::memory_order_relaxed)); }

}  // namespace

RequestSlot& Session::slot_of(const Line& line) noexcept {
  uint16_t i = line.op_slot_;
  return node_.session_slots_[i / kSlotsPerSession].slot[i % kSlotsPerSession];
}

// REQUIRES: the line's X latch.
void Session::start(Line& line, RequestSlot& slot, Event::Kind fetch) noexcept {
  slot.line.store(node_.index_of(line), std::memory_order_relaxed);
  slot.refusals.store(0, std::memory_order_relaxed);
  slot.resend_at.store(0, std::memory_order_relaxed);
  slot.state.store(SlotState::kWaiting, std::memory_order_release);
  Actions actions;
  uint16_t index = uint16_t(id_.value * kSlotsPerSession + (&slot - slot_.slot));
  {
    SpinGuard guard(line.spin_, node_.fence_);
    line.op_slot_ = index;
    counters_.add(fetch != Event::Kind::kFetchExclusive ? Counter::kMissShared
                  : line.state_.memo == Memo::kShared   ? Counter::kUpgrades
                                                        : Counter::kMissExclusive);
    ++moved_;
    actions = step_line(line, {.kind = fetch});
  }
  run(line, actions, index);
}

Actions Session::step_line(Line& line, const Event& event) noexcept {
  Actions actions = step(line.state_, node_.id_, event, node_.features_);
  VERIFY(!actions.bad);
  if (actions.send != RequestKind::kNone) fill_slot(line, actions);
  bool pending = line.state_.parked_count > 0;
  if (pending != LocalWord{line.latch_.load(std::memory_order_relaxed)}.pending()) {
    if (pending) {
      line.latch_.fetch_or(LocalWord::kPending, std::memory_order_acq_rel);
    } else {
      line.latch_.fetch_and(~LocalWord::kPending, std::memory_order_acq_rel);
      line.turns_.store(0, std::memory_order_relaxed);
    }
  }
  return actions;
}

// `slot` is the operation's, read under the spinlock: once the requests are out, others may end the operation.
void Session::run(Line& line, Actions actions, uint16_t slot) noexcept {
  NodeId to;
  Line* unsettled = nullptr;  // whom we granted meanwhile
  for (;;) {
    answer(line, actions);
    if (actions.send != RequestKind::kNone) return send(slot, actions);
    if (actions.post == Post::kNone) break;
    if (actions.post == Post::kDropShare && line.state_.op == LineOp::kFallbackPosted)
      counters_.add(Counter::kUpgradeFallbacks);
    if (line.state_.op == LineOp::kInvalidatePosted) make_way(line);
    to = NodeId{line.state_.serving.from};
    const Posted posted = post(line, actions);
    SpinGuard guard(line.spin_, node_.fence_);
    actions = step_line(line, {.kind = Event::Kind::kBatchDone, .answered = posted.answered, .old = posted.old});
    unsettled = posted.unsettled;
    slot = line.op_slot_;
  }
  if (actions.finished) return finish(line, actions);
  if (actions.latch == LatchEnd::kRelease) {
    if (line.state_.memo == Memo::kInvalid && node_.directory_) node_.directory_->lost(line);
    end_latch(line, LatchEnd::kRelease, line.state_.memo);
  }
  if (unsettled) tell_settled(to, *unsettled);
}

// Null: it is not in the pool any more.  Whoever gets here has reached everybody (I18), unless somebody has joined
// since: a message that can be neither sent nor answered then would be waited for without end.
PeerArena* Session::peer(NodeId node) noexcept {
  const auto mapped = node_.peer(node);
  if (mapped) return *mapped;
  if (mapped.error() == Errc::kNoMemory) node_.fence("a process has no room to map a peer that has just joined");
  return nullptr;
}

// Runs one batch to its end; returns the old word.  (A transport with asynchronous completion would return here and
// come back with kBatchDone; shm is done when post() returns.)
Session::Posted Session::post(Line& line, const Actions& actions) noexcept {
  PageId page = line.page();
  NodeId self = node_.id_;
  PoolAddress word = node_.pool_.latch_address(page), bytes = node_.pool_.page_address(page);
  std::byte* frame = node_.frame(line);
  Batch batch(page.node());
  int atomic = -1;
  switch (actions.post) {
    case Post::kAddReader:
      atomic = batch.faa(word, LatchWord::add_reader(self));
      batch.read(bytes, frame, kPageSize, OnlyIf::kNoHolder);
      break;
    case Post::kProbe:
      atomic = batch.load(word);
      batch.read(bytes, frame, kPageSize, OnlyIf::kNoHolder);
      break;
    case Post::kTake:
      atomic = batch.cas(word, LatchWord::free().raw, LatchWord::owned_by(self).raw);
      batch.read(bytes, frame, kPageSize, OnlyIf::kCasSucceeded);
      break;
    case Post::kReadPage:
      batch.read(bytes, frame, kPageSize);
      break;
    case Post::kUpgrade:
      atomic = batch.cas(word, LatchWord::sole_reader(self).raw, LatchWord::owned_by(self).raw);
      break;
    case Post::kClaim: {
      const bool shares = line.state_.memo == Memo::kShared;  // its own copy is as new as any
      const NodeSet expected = shares ? actions.over.with(self) : actions.over;
      atomic = batch.cas(word, LatchWord::shared_by(expected).raw, LatchWord::claimed_by(self, actions.over).raw);
      if (!shares) batch.read(bytes, frame, kPageSize, OnlyIf::kCasSucceeded);
      break;
    }
    case Post::kDropShare:
      atomic = batch.faa(word, LatchWord::drop_reader(self));
      break;
    case Post::kRelease:
    case Post::kHandOver:
    case Post::kDowngrade: {
      add_write_back(batch, line);  // the bytes, then the word (F2)
      uint64_t addend = actions.post == Post::kRelease    ? LatchWord::drop_holder(self)
                        : actions.post == Post::kHandOver ? LatchWord::hand_over(self, actions.to)
                                                          : LatchWord::downgrade(self);
      atomic = batch.faa(word, addend);
      break;
    }
    case Post::kNone:
      VERIFY(false);
  }
  const uint64_t posted = monotonic_ns();
  memory_.post(batch);
  Posted result;
  word_is_near_ = batch.done();
  if (!word_is_near_) answer_early(line, &result);
  memory_.wait(batch);
  note_round_trip(monotonic_ns() - posted);
  VERIFY(batch.known());
  if (actions.post == Post::kRelease || actions.post == Post::kHandOver || actions.post == Post::kDowngrade)
    written_back(line);
  if (atomic >= 0) result.old = batch.op(atomic).old;
  return result;
}

// WRITEs of the dirty ranges; the page header's line last (S9).  REQUIRES: the bytes do not change, stamps aside.
void Session::add_write_back(Batch& batch, Line& line) noexcept {
  uint64_t dirty[2];
  for (int i = 0; i < 2; i++) dirty[i] = line.dirty_[i].exchange(0, std::memory_order_acquire);  // pairs with stamps
  PoolAddress at = node_.pool_.page_address(line.page());
  const std::byte* frame = node_.frame(line);
  auto is_dirty = [&](uint32_t i) { return i < 128 && (dirty[i / 64] >> i % 64 & 1); };
  int ranges = std::popcount(dirty[0] & ~(dirty[0] << 1)) + std::popcount(dirty[1] & ~(dirty[1] << 1 | dirty[0] >> 63));
  bool header = is_dirty(0);
  if (ranges > kRangesMax) {
    batch.write(at + 64, frame + 64, kPageSize - 64);
  } else {
    for (uint32_t i = 1; i < 128;) {
      uint32_t end = i;
      while (is_dirty(end)) end++;
      if (end > i) batch.write(at + i * 64, frame + i * 64, (end - i) * 64);
      i = end + 1;
    }
  }
  if (header) batch.write(at, frame, 64);
}

void Session::written_back(Line& line) noexcept {
  line.first_change_.store(Line::kNoChange, std::memory_order_release);
}

// --- requests of ours ----------------------------------------------------------------------------------------------

// Under the spinlock, so that nobody takes an old round's replies for this one's.
void Session::fill_slot(Line& line, const Actions& actions) noexcept {
  RequestSlot& s = slot_of(line);
  const uint64_t serial = s.serial.load(std::memory_order_relaxed) + 1;
  s.serial.store(serial, std::memory_order_relaxed);
  s.page.store(line.page().raw, std::memory_order_relaxed);
  s.kind.store(actions.send, std::memory_order_relaxed);
  s.priority.store(line.state_.priority, std::memory_order_relaxed);
  s.sent_in_view.store(node_.pool_.table().view.load(std::memory_order_acquire), std::memory_order_relaxed);
  for (NodeSet left = actions.send_to; !left.empty(); left = left.without(left.first()))
    s.reply[left.first().value].store(ReplyWord::asked(serial).raw, std::memory_order_release);  // see take_request()
}

void Session::send(uint16_t slot, const Actions& actions) noexcept {
  const RequestSlot& asks = node_.session_slots_[slot / kSlotsPerSession].slot[slot % kSlotsPerSession];
  const PageId page{asks.page.load(std::memory_order_relaxed)};  // the first reply may end it
  for (NodeSet left = actions.send_to; !left.empty(); left = left.without(left.first())) {
    PeerArena* there = peer(left.first());
    counters_.add(sent_counter(actions.send));
    node_.hot_->count(page, PageMessage::kRequestSent, node_.fence_);
    if (!there) continue;  // not in the pool any more: collect() counts it as gone
    ArenaHeader& arena = there->header();
    Inbox& inbox = arena.inbox[node_.id_.value];
    // Publishes the slot; pairs with the exchanges of drain_inbox().  The order of the three is its order backwards.
    inbox.bits[slot / 64].fetch_or(uint64_t{1} << slot % 64, std::memory_order_seq_cst);
    inbox.words_set.fetch_or(uint64_t{1} << slot / 64, std::memory_order_seq_cst);
    arena.inbox_peers.fetch_or(NodeSet::of(node_.id_).bits, std::memory_order_seq_cst);
    ring(arena);
  }
}

// Whether all replies that were still missing are in, and all are refusals; and whether they say: not now.  A holder
// who says only that the page is not with him does not say so.  REQUIRES: the spinlock.
bool Session::refused(const Line& line, const RequestSlot& slot, bool* not_now) const noexcept {
  if (line.state_.granted != ReplyKind::kNone || line.state_.op == LineOp::kWaitClaimed) return false;
  for (NodeSet left = line.state_.waiting; !left.empty(); left = left.without(left.first())) {
    const ReplyWord word{slot.reply[left.first().value].load(std::memory_order_acquire)};
    if (!word.is_reply() || word.round() != round_of(slot) || word.kind() != ReplyKind::kDropped) return false;
    const bool asks_holder = slot.kind.load(std::memory_order_relaxed) != RequestKind::kPeerInv;
    *not_now &= !asks_holder || word.passed_to() == left.first();
  }
  return true;
}

// Takes the replies that are in; whether there was any.  The line may be another's by now: then there is none for us.
Session::Replies Session::collect(Line& line) noexcept {
  Actions actions;
  Replies any = Replies::kNone;
  uint16_t slot;
  {
    SpinGuard guard(line.spin_, node_.fence_);
    NodeSet waiting = line.state_.waiting;
    if (waiting.empty()) return any;
    slot = line.op_slot_;
    RequestSlot& s = slot_of(line);
    const uint16_t round = round_of(s);
    bool not_now = true;
    if (refused(line, s, &not_now) && too_early(s, not_now)) return Replies::kTooEarly;
    for (; !waiting.empty(); waiting = waiting.without(waiting.first())) {
      NodeId from = waiting.first();
      const NodeEntry& e = node_.pool_.table().node[from.value];
      Membership state = e.state.load(std::memory_order_acquire);  // before the reply: the last one came before it left
      // I21: a dead node's share stands until it is repaired, as some of its processes may still be reading.
      const bool stands = state == Membership::kDead && line.state_.op == LineOp::kWaitClaimed;
      bool gone = state == Membership::kAbsent || (state == Membership::kDead && !stands) ||
                  e.joined_view.load(std::memory_order_relaxed) > s.sent_in_view.load(std::memory_order_relaxed);
      ReplyWord word{s.reply[from.value].load(std::memory_order_acquire)};  // pairs with reply(); brings the page
      bool replied = word.is_reply() && word.round() == round;
      if (!replied && !gone) continue;
      ReplyKind kind = replied ? word.kind() : ReplyKind::kDropped;
      if (kind == ReplyKind::kHeld) {
        s.held.store(word.held_by(), std::memory_order_relaxed);
        s.held_at.store(from.value, std::memory_order_relaxed);
      }
      if (any != Replies::kSome) any = kind == ReplyKind::kDropped ? Replies::kRefusals : Replies::kSome;
      if (replied) counters_.add(reply_counter(kind, false));
      if (carries_page(kind)) node_.hot_->count(line.page(), PageMessage::kPageReceived, node_.fence_);
      const bool hint = replied && kind == ReplyKind::kDropped && !word_is_near_;
      actions = step_line(line, {.kind = replied ? Event::Kind::kReply : Event::Kind::kGone,
                                 .reply = kind,
                                 .from = from,
                                 .passed_to = hint ? word.passed_to() : NodeId()});
      if (line.state_.waiting.empty()) break;
    }
  }
  if (any != Replies::kNone) run(line, actions, slot);
  return any;
}

// The fetch is over: the latch becomes the caller's, or, if he left, is released (F3, F5).
void Session::finish(Line& line, const Actions& actions) noexcept {
  RequestSlot& s = slot_of(line);
  s.outcome.store(actions.outcome, std::memory_order_relaxed);
  end_latch(line, actions.latch, line.state_.memo);
  SlotState waiting = SlotState::kWaiting;
  if (s.state.compare_exchange_strong(waiting, SlotState::kFinished, std::memory_order_acq_rel)) {
    s.bell.fetch_add(1, std::memory_order_seq_cst);
    if (s.sleeping.load(std::memory_order_seq_cst)) futex_wake(s.bell, 1);
    if (actions.latch == LatchEnd::kRelease) settle(line);
    return;
  }
  s.state.store(SlotState::kFree, std::memory_order_release);  // pairs with take_slot()
  if (actions.latch == LatchEnd::kRelease) return settle(line);
  if (actions.latch == LatchEnd::kToShared) return unlock_shared(line);
  unlock_exclusive(line);
}

// --- requests of peers ---------------------------------------------------------------------------------------------

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
  const PeerRequest request = line.state_.serving;  // stays until the batch is complete
  const LineOp op = line.state_.op;
  const bool grants = op == LineOp::kHandOverPosted || op == LineOp::kDowngradePosted;
  if (grants ? !node_.features_.has(Feature::kForwarding) : op != LineOp::kInvalidatePosted) return;
  PeerArena* there = peer(NodeId{request.from});
  if (!there) return;
  posted->answered = true;
  if (!grants) return deliver(*there, request, ReplyKind::kDone, nullptr, 0);
  RequestSlot* s = there->slot(request.slot);
  VERIFY(s);
  posted->unsettled = there->line(s->line.load(std::memory_order_relaxed));
  VERIFY(posted->unsettled);
  posted->unsettled->unsettled_.store(true, std::memory_order_relaxed);  // published by the reply
  const ReplyKind kind = op == LineOp::kHandOverPosted ? ReplyKind::kGrantM : ReplyKind::kGrantS;
  deliver(*there, request, kind, node_.frame(line), 0);
}

// The batch is complete: the word names the node, and its line may leave it.  It could not before, so it is the same
// line still.
void Session::tell_settled(NodeId node, Line& landing) noexcept {
  PeerArena* there = peer(node);
  landing.unsettled_.store(false, std::memory_order_seq_cst);  // one of this and wait_to_leave() sees the other
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
      const bool wanted = state.op == LineOp::kIdle && state.memo != Memo::kInvalid;
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
  } else if (actions.post != Post::kNone) {
    counters_.add(helping_ ? Counter::kServedByUnlocker : Counter::kServedByWorker);
  }
  if (left) return;
  if (actions.blocked)
    wait_to_leave(*line, false);
  else
    settle(*line);
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
  return !line.unsettled() && (line.state_.memo != Memo::kModified || logged(line));
}

bool Session::logged(const Line& line) noexcept { return !node_.horizon_ || line.lsn() <= node_.horizon_->flushed(); }

void Session::ask_for_log(const Line& line) noexcept {
  if (!logged(line)) node_.horizon_->request_flush(line.lsn());
}

void Session::wait_to_leave(Line& line, bool ring) noexcept {
  leave_to_worker(line, false);
  if (line.unsettled()) return;           // who settles it sees `pending`, and rings
  if (logged(line)) return node_.ring();  // it was settled meanwhile
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
