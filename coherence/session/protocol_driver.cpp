#include "coherence/session/protocol_driver.hpp"

#include <algorithm>
#include <memory>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/message/message_counters.hpp"
#include "coherence/session/transition_batch.hpp"
#include "coherence/session/write_back.hpp"

namespace coherence {
namespace {

// How long a writer that was refused once goes first (coherence.readers-stand-back).
constexpr uint64_t kStandBackNs = 50'000;
constexpr int kDoublingsMax = 7;
constexpr uint64_t kMemoryNs = 10'000'000'000, kMemoryPauseNs = 5'000'000;
// The time between a refusal and the next request: C * RTT / refusals (SELCC, 5.1.2).
constexpr uint64_t kResendRoundTrips = 4;
constexpr uint64_t kResendNsMax = 1'000'000;

uint16_t microseconds() { return uint16_t(monotonic_ns() / 1'000); }

uint16_t round_of(const RequestSlot& s) { return uint16_t(s.serial.load(std::memory_order_relaxed)); }

}  // namespace

Left ProtocolDriver::start(Line& line, RequestSlot& slot, Event::Kind fetch) noexcept {
  slot.line.store(session_.node.index_of(line), std::memory_order_relaxed);
  slot.refusals.store(0, std::memory_order_relaxed);
  slot.resend_at.store(0, std::memory_order_relaxed);
  slot.state.store(SlotState::kWaiting, std::memory_order_release);
  Actions actions;
  const auto index = uint16_t(session_.id.value * kSlotsPerSession + (&slot - session_.slot.slot));
  {
    LineFields& f = fields(line);
    SpinGuard guard(f.spin, session_.node.fence);
    f.op_slot = index;
    session_.counters.add(fetch != Event::Kind::kFetchExclusive ? Counter::kMissShared
                          : f.state.msi == MsiState::kShared    ? Counter::kUpgrades
                                                                : Counter::kMissExclusive);
    ++session_.moved;
    actions = step_line(line, {.kind = fetch, .passed_to = ask_first(line)});
  }
  return run(line, actions, index);
}

Actions ProtocolDriver::step_line(Line& line, const Event& event) noexcept {
  // Nothing is early where a batch is complete when it has been posted (coherence.early-grant-bound).
  const Features all = session_.node.features;
  LineFields& f = fields(line);
  const BeforeStep before(f.state);
  Actions actions =
      step(f.state, session_.node.id, event, session_.word_is_near ? all.without(Feature::kEarlyAnswers) : all);
  session_.flight.note(line, f.op_slot, before, f.state, event, actions, session_.word_is_near);
  VERIFY(!actions.bad);
  VERIFY(actions.send_to.valid());  // a damaged latch word can name what is no node
  if (actions.send != RequestKind::kNone) fill_slot(line, actions);
  const bool pending = f.state.parked_count > 0;
  if (pending != LocalWord{f.latch.load(std::memory_order_relaxed)}.pending()) {
    if (pending) {
      f.latch.fetch_or(LocalWord::kPending, std::memory_order_acq_rel);
    } else {
      f.latch.fetch_and(~LocalWord::kPending, std::memory_order_acq_rel);
      f.turns.store(0, std::memory_order_relaxed);
    }
  }
  return actions;
}

// The node that took the page two round trips ago or less probably has it still (coherence.reader-joins-taker); where
// it has not, the word is one look away.  Where a look costs less than a message, no node is asked first.
NodeId ProtocolDriver::ask_first(const Line& line) const noexcept {
  if (session_.word_is_near) return {};
  const auto ago = uint16_t(microseconds() - fields(line).passed_on_us.load(std::memory_order_relaxed));
  return ago * uint64_t{1'000} <= 2 * session_.round_trip_ns ? fields(line).state.passed_to : NodeId();
}

Left ProtocolDriver::run(Line& line, Actions actions, uint16_t slot) noexcept {
  if (actions.post == Post::kNone) return carry_out(line, actions, slot);
  return go_on(line, actions, under_way_->take(line));
}

// Posts what is to be posted, as long as each batch is complete at once.  The place is the line's until its operation
// posts nothing more.
Left ProtocolDriver::go_on(Line& line, Actions& actions, int place) noexcept {
  Transition& transition = (*under_way_)[place];
  uint16_t slot;
  for (;;) {
    if (!post(line, actions, transition)) {
      under_way_->posted(place);
      session_.note_under_way(under_way_->count());
      return Left::kNothing;
    }
    if (!take_event(transition, &actions, &slot)) {
      under_way_->give_back(place);
      return Left::kNothing;
    }
    if (actions.post == Post::kNone) break;
    std::construct_at(&transition, line);
  }
  under_way_->give_back(place);
  return carry_out(line, actions, slot);
}

Left ProtocolDriver::complete(int place) noexcept {
  Transition& transition = (*under_way_)[place];
  Line& line = *transition.line;
  const Answers::Early early = transition.early;
  Actions actions;
  uint16_t slot;
  if (!take_event(transition, &actions, &slot)) {
    under_way_->give_back(place);
    return Left::kNothing;
  }
  Left left;
  if (actions.post != Post::kNone) {
    std::construct_at(&transition, line);
    left = go_on(line, actions, place);
  } else {
    under_way_->give_back(place);
    left = carry_out(line, actions, slot);
  }
  answers_.complete(early);
  return left;
}

// Returns whether the batch is complete.
bool ProtocolDriver::post(Line& line, const Actions& actions, Transition& transition) noexcept {
  LineFields& f = fields(line);
  if (actions.post == Post::kDropShare && f.state.op == LineOp::kFallbackPosted)
    session_.counters.add(Counter::kUpgradeFallbacks);
  if (f.state.op == LineOp::kInvalidatePosted) make_way(line);
  const bool near = session_.word_is_near;
  const bool loses = f.state.op == LineOp::kInvalidatePosted || f.state.op == LineOp::kHandOverPosted;
  if (loses && !near) f.passed_on_us.store(microseconds(), std::memory_order_relaxed);
  transition.what = actions.post;
  transition.atomic = add_transition(session_.node, transition.batch, line, actions);
  if (near) answers_.send(line, actions);
  transition.began = monotonic_ns();
  if (actions.post < Post::kRelease || actions.post == Post::kTakeOver) session_.memory.count_wait();
  session_.memory.post(transition.batch);
  const bool complete = transition.batch.done();
  session_.word_is_near = complete;
  if (!complete) answers_.send_early(line, &transition.early);
  if (!near) answers_.send(line, actions);  // while it is on its way
  return complete;
}

// The batch is complete: steps kBatchDone (coherence.event-ends-batch).  False: whether it took place is not known
// (transport.unknown-cuts-off), or its page cannot be had; what the operation held stays as it is.
bool ProtocolDriver::take_event(Transition& transition, Actions* actions, uint16_t* slot) noexcept {
  Line& line = *transition.line;
  LineFields& f = fields(line);
  const Batch& batch = transition.batch;
  const Status known = session_.memory.outcome(batch);
  session_.note_round_trip(monotonic_ns() - transition.began);
  if (!known) return false;
  if (writes_back(transition.what)) written_back(line);
  if (transition.what == Post::kTakeOver && batch.cas_succeeded(transition.atomic) && !repair(line)) return false;
  const uint64_t old = transition.atomic >= 0 ? batch.op(transition.atomic).old : 0;
  SpinGuard guard(f.spin, session_.node.fence);
  *actions = step_line(line, {.kind = Event::Kind::kBatchDone,
                              .answered = transition.early.answered,
                              .repairable = session_.node.members->repairable(),  // here: repair.drained-last
                              .old = old});
  *slot = f.op_slot;
  return true;
}

// What is to be done beside posting.
Left ProtocolDriver::carry_out(Line& line, const Actions& actions, uint16_t slot) noexcept {
  answers_.send(line, actions);
  if (actions.send != RequestKind::kNone) {
    send(slot, actions);
    return Left::kNothing;
  }
  if (actions.finished) return finish(line, actions);
  if (actions.latch == LatchEnd::kRelease) {
    const MsiState msi = fields(line).state.msi;
    if (msi == MsiState::kInvalid && session_.node.directory) session_.node.directory->lost(line);
    latches_.end_latch(line, LatchEnd::kRelease, msi);
  }
  return Left::kNothing;
}

// The page was a dead node's, and is this one's now; the line is latched, and its operation posted.  False: it cannot
// be had, and the pool is fenced (repair.redo-before-use).  A sharer's own copy is as new as any.
bool ProtocolDriver::repair(Line& line) noexcept {
  if (fields(line).state.msi == MsiState::kShared) return true;
  PageRepair* const repair = session_.node.repair;
  VERIFY(repair != nullptr);
  NodeSet dead;  // also those that are not repairable yet (repair.all-dead-redo)
  for (uint32_t n = 0; n < session_.node.members->nodes_max(); n++)
    if (const NodeId node{uint8_t(n)}; session_.node.members->info(node).dead()) dead = dead.with(node);
  Problem why;
  auto changed = repair->repair(line.page(), session_.node.frame(line), dead, session_.memory, &why);
  // This process alone lacks memory, perhaps for a moment, and the page is latched.
  for (uint64_t until = monotonic_ns() + kMemoryNs; changed.error() == Errc::kNoMemory && monotonic_ns() < until;) {
    nap(kMemoryPauseNs);
    changed = repair->repair(line.page(), session_.node.frame(line), dead, session_.memory, &why);
  }
  session_.counters.add(Counter::kRepairs);
  if (changed.error() == Errc::kNoMemory) {  // others have some (repair.no-memory-is-a-crash)
    Problem reason;
    reason.write("a page of a dead node cannot be repaired: %s", why.text);
    end_process(reason.text);
  }
  if (!changed) {
    Problem reason;
    reason.write("a page of a dead node cannot be repaired: %s", why.text);
    session_.node.members->fence(reason.text);
  }
  if (changed && *changed)
    fields(line).all_dirty.store(true, std::memory_order_release);  // pairs with add_write_back()
  return changed.ok();
}

void ProtocolDriver::make_way(Line& line) noexcept {
  const PeerRequest& serving = fields(line).state.serving;
  const int refused = serving.priority;
  if (serving.kind == RequestKind::kPeerClaim) return;  // that writer has the word
  if (refused == 0 || !session_.has(Feature::kStandBack)) return;
  const uint64_t ns = kStandBackNs << std::min(refused - 1, kDoublingsMax);
  fields(line).stand_back_until.store(monotonic_ns() + ns, std::memory_order_relaxed);
}

// --- requests of this node -----------------------------------------------------------------------------------------

// Under the spinlock, so that no process takes an old round's replies for this one's.
void ProtocolDriver::fill_slot(Line& line, const Actions& actions) noexcept {
  RequestSlot& s = slot_of(line);
  const uint64_t serial = s.serial.load(std::memory_order_relaxed) + 1;
  s.serial.store(serial, std::memory_order_relaxed);
  s.page.store(line.page().raw, std::memory_order_relaxed);
  s.kind.store(actions.send, std::memory_order_relaxed);
  s.priority.store(fields(line).state.priority, std::memory_order_relaxed);
  for (NodeSet left = actions.send_to; !left.empty(); left = left.without(left.first())) {
    const ReplyWord asked = ReplyWord::asked(serial, session_.node.members->info(left.first()).incarnation);
    s.reply[left.first().value].store(asked.raw, std::memory_order_release);  // pairs with Messenger::take_request()
  }
}

// The first reply may end the operation, and the slot may be another one's then.
void ProtocolDriver::send(uint16_t slot, const Actions& actions) noexcept {
  const PageId page{session_.node.slot(slot).page.load(std::memory_order_relaxed)};
  for (NodeSet left = actions.send_to; !left.empty(); left = left.without(left.first())) {
    session_.counters.add(sent_counter(actions.send));
    session_.messenger.ask(left.first(), slot, page);
  }
}

// Whether all replies that were still missing are in, and all are refusals; and whether they say: not now.  An owner
// that says only that the page is not with it does not say so.  REQUIRES: the spinlock.
bool ProtocolDriver::refused(const Line& line, const RequestSlot& slot, bool* not_now) const noexcept {
  const LineState& state = fields(line).state;
  if (state.granted != ReplyKind::kNone || state.op == LineOp::kWaitClaimed) return false;
  for (NodeSet left = state.waiting; !left.empty(); left = left.without(left.first())) {
    const ReplyWord word{slot.reply[left.first().value].load(std::memory_order_acquire)};
    if (!word.is_reply() || word.round() != round_of(slot) || word.kind() != ReplyKind::kDropped) return false;
    const bool asks_owner = slot.kind.load(std::memory_order_relaxed) != RequestKind::kPeerInv;
    *not_now &= !asks_owner || word.passed_to() == left.first();
  }
  return true;
}

// Whether a round that was refused must wait before the next: if it was refused for now, or again and again by the node
// that was asked (one of them waits for a dead node).  Not if a request waits for the round to end.  REQUIRES: the
// line's spinlock.
bool ProtocolDriver::too_early(const Line& line, RequestSlot& slot, bool not_now) noexcept {
  if (fields(line).state.parked_count > 0) return false;
  // No process naps over an abandoned operation: the worker looks when it is rung, and would come late.  After many
  // refusals the round waits all the same, so that the worker does not spin.
  const bool abandoned = slot.state.load(std::memory_order_acquire) == SlotState::kAbandoned;
  if (!abandoned && !(not_now && session_.has(Feature::kResendInterval))) return false;
  const uint64_t now = monotonic_ns();
  uint64_t at = slot.resend_at.load(std::memory_order_relaxed);
  if (at == 0) {
    const uint32_t refusals = slot.refusals.load(std::memory_order_relaxed) + 1u;
    slot.refusals.store(refusals, std::memory_order_relaxed);
    if (abandoned && refusals <= kRoundsWithoutPause) return false;
    const uint64_t interval = std::min(kResendRoundTrips * session_.round_trip_ns / refusals, kResendNsMax);
    at = now + (abandoned ? kResendNsMax : interval);
    session_.counters.add(Counter::kResendWaits);
  }
  const bool early = now < at;
  slot.resend_at.store(early ? at : 0, std::memory_order_relaxed);
  return early;
}

// Whether the peer will still answer.  kGone: it left, or died.  kBack: another incarnation than the one that was asked
// is there (coherence.messages-for-incarnation).  REQUIRES: the line's spinlock, as for parking what it asks.
ProtocolDriver::Presence ProtocolDriver::presence(NodeId peer, ReplyWord asked) const noexcept {
  const Membership& members = *session_.node.members;
  const NodeInfo info = members.info(peer);
  // What a dead node has stands until it is repairable: some of its processes may still be reading, and no process may
  // take its place before (repair.quiesced-first).  Where deaths are not repaired, the fence ends the wait.
  if (info.state == MemberState::kDead && !members.repairable().has(peer)) return Presence::kThere;
  if (info.state == MemberState::kAbsent || info.dead()) return Presence::kGone;
  return asked.is_for(info.incarnation) ? Presence::kThere : Presence::kBack;
}

ProtocolDriver::Collected ProtocolDriver::collect(Line& line) noexcept {
  Actions actions;
  Replies any = Replies::kNone;
  uint16_t slot;
  {
    LineFields& f = fields(line);
    SpinGuard guard(f.spin, session_.node.fence);
    NodeSet waiting = f.state.waiting;
    if (waiting.empty()) return {};
    slot = f.op_slot;
    RequestSlot& s = slot_of(line);
    const uint16_t round = round_of(s);
    bool not_now = true;
    if (refused(line, s, &not_now) && too_early(line, s, not_now)) return {Replies::kTooEarly};
    if (!has_room()) return {};
    for (; !waiting.empty(); waiting = waiting.without(waiting.first())) {
      const NodeId from = waiting.first();
      ReplyWord word{s.reply[from.value].load(std::memory_order_acquire)};  // pairs with Messenger::reply()
      const Presence there = word.is_reply() ? Presence::kThere : presence(from, word);
      const bool gone = there != Presence::kThere;
      if (gone) word.raw = s.reply[from.value].load(std::memory_order_acquire);  // its last one came before it left
      const bool replied = word.is_reply() && word.round() == round;
      if (!replied && !gone) continue;
      const ReplyKind kind = replied ? word.kind() : ReplyKind::kDropped;
      if (kind == ReplyKind::kHeld) {
        s.held.store(word.held_by(), std::memory_order_relaxed);
        s.held_at.store(from.value, std::memory_order_relaxed);
      }
      if (any != Replies::kSome) any = kind == ReplyKind::kDropped ? Replies::kRefusals : Replies::kSome;
      if (replied) session_.counters.add(reply_counter(kind, false));
      if (carries_page(kind)) session_.node.hot->count(line.page(), PageMessage::kPageReceived, session_.node.fence);
      const bool hint = replied && kind == ReplyKind::kDropped && !session_.word_is_near;
      actions = step_line(line, {.kind = replied ? Event::Kind::kReply : Event::Kind::kGone,
                                 .reply = kind,
                                 .from = from,
                                 .passed_to = hint ? word.passed_to() : NodeId(),
                                 .back = there == Presence::kBack});
      if (f.state.waiting.empty()) break;
    }
  }
  return {any, any != Replies::kNone ? run(line, actions, slot) : Left::kNothing};
}

// The fetch is over: the latch becomes the caller's, or, if the caller left, is released (coherence.one-operation,
// session.operation-outlives-caller).
Left ProtocolDriver::finish(Line& line, const Actions& actions) noexcept {
  RequestSlot& s = slot_of(line);
  s.outcome.store(actions.outcome, std::memory_order_relaxed);
  latches_.end_latch(line, actions.latch, fields(line).state.msi);
  const Left free = actions.latch == LatchEnd::kRelease ? Left::kFree : Left::kNothing;
  SlotState waiting = SlotState::kWaiting;
  if (s.state.compare_exchange_strong(waiting, SlotState::kFinished, std::memory_order_acq_rel)) {
    s.wakeup.fetch_add(1, std::memory_order_seq_cst);
    if (s.sleeping.load(std::memory_order_seq_cst)) futex_wake(s.wakeup, 1);
    return free;
  }
  s.state.store(SlotState::kFree, std::memory_order_release);  // pairs with Requester::take_slot()
  if (free == Left::kFree) return free;
  if (actions.latch == LatchEnd::kToShared)
    LatchTable::release_shared(line);
  else
    LatchTable::release_exclusive(line);
  return Left::kUnlocked;
}

}  // namespace coherence
