// The protocol side of a Session: gives step() its events and does what it says.  Any process of the node may drive a
// line's operation; the spinlock orders the steps, a posted batch or the X latch keeps the rest away.
#include <bit>

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/message/message_counters.hpp"
#include "coherence/pool/node_table.hpp"
#include "coherence/session.hpp"

namespace coherence {
namespace {

constexpr int kRangesMax = 8;  // of a write-back; a page changed in more places is written whole

uint16_t microseconds() { return uint16_t(monotonic_ns() / 1'000); }

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
    counters_.add(fetch != Event::Kind::kFetchExclusive  ? Counter::kMissShared
                  : line.state_.msi == MsiState::kShared ? Counter::kUpgrades
                                                         : Counter::kMissExclusive);
    ++moved_;
    actions = step_line(line, {.kind = fetch, .passed_to = ask_first(line)});
  }
  run(line, actions, index);
}

Actions Session::step_line(Line& line, const Event& event) noexcept {
  // Nothing is early where a batch is complete when it has been posted (I20).
  const Features on = word_is_near_ ? node_.features_.without(Feature::kEarlyAnswers) : node_.features_;
  const BeforeStep before(line.state_);
  Actions actions = step(line.state_, node_.id_, event, on);
  flight_.note(line, line.op_slot_, before, line.state_, event, actions, word_is_near_);
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

// I23: who took the page two round trips ago or less has it still, probably, and where he has not the word is one look
// away.  Where a look costs less than a message, nobody.
NodeId Session::ask_first(const Line& line) const noexcept {
  if (word_is_near_) return {};
  const auto ago = uint16_t(microseconds() - line.passed_on_us_.load(std::memory_order_relaxed));
  return ago * uint64_t{1'000} <= 2 * round_trip_ns_ ? line.state_.passed_to : NodeId();
}

// `slot` is the operation's, read under the spinlock: once the requests are out, others may end the operation.
void Session::run(Line& line, Actions actions, uint16_t slot) noexcept {
  Posted posted;
  for (;;) {
    if (actions.post == Post::kNone) answer(line, actions);  // else with the batch
    if (actions.send != RequestKind::kNone) return send(slot, actions);
    if (actions.post == Post::kNone) break;
    if (actions.post == Post::kDropShare && line.state_.op == LineOp::kFallbackPosted)
      counters_.add(Counter::kUpgradeFallbacks);
    if (line.state_.op == LineOp::kInvalidatePosted) make_way(line);
    const bool loses = line.state_.op == LineOp::kInvalidatePosted || line.state_.op == LineOp::kHandOverPosted;
    if (loses && !word_is_near_) line.passed_on_us_.store(microseconds(), std::memory_order_relaxed);
    posted = post(line, actions);
    SpinGuard guard(line.spin_, node_.fence_);
    actions = step_line(line, {.kind = Event::Kind::kBatchDone, .answered = posted.answered, .old = posted.old});
    slot = line.op_slot_;
  }
  if (actions.finished) return finish(line, actions);
  if (actions.latch == LatchEnd::kRelease) {
    if (line.state_.msi == MsiState::kInvalid && node_.directory_) node_.directory_->lost(line);
    end_latch(line, LatchEnd::kRelease, line.state_.msi);
  }
  for (int i = 0; i < posted.grants; i++) confirm_grant(posted.granted[i].to, *posted.granted[i].line);
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
      const bool shares = line.state_.msi == MsiState::kShared;  // its own copy is as new as any
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
      add_write_back(batch, line);  // the bytes, then the word
      uint64_t addend = actions.post == Post::kRelease    ? LatchWord::drop_holder(self)
                        : actions.post == Post::kHandOver ? LatchWord::hand_over(self, actions.to)
                                                          : LatchWord::downgrade(self, actions.over);
      atomic = batch.faa(word, addend);
      break;
    }
    case Post::kNone:
      VERIFY(false);
  }
  const bool near = word_is_near_;
  if (near) answer(line, actions);
  const uint64_t posted = monotonic_ns();
  memory_.post(batch);
  Posted result;
  word_is_near_ = batch.done();
  if (!word_is_near_) answer_early(line, &result);
  if (!near) answer(line, actions);  // while it is on its way
  memory_.wait(batch);
  note_round_trip(monotonic_ns() - posted);
  VERIFY(batch.known());
  if (actions.post == Post::kRelease || actions.post == Post::kHandOver || actions.post == Post::kDowngrade)
    written_back(line);
  if (atomic >= 0) result.old = batch.op(atomic).old;
  return result;
}

// WRITEs of the dirty ranges; the page header's line last.  REQUIRES: the bytes do not change, stamps aside.
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
    if (refused(line, s, &not_now) && too_early(line, s, not_now)) return Replies::kTooEarly;
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

// The fetch is over: the latch becomes the caller's, or, if he left, is released (I3, C5).
void Session::finish(Line& line, const Actions& actions) noexcept {
  RequestSlot& s = slot_of(line);
  s.outcome.store(actions.outcome, std::memory_order_relaxed);
  end_latch(line, actions.latch, line.state_.msi);
  SlotState waiting = SlotState::kWaiting;
  if (s.state.compare_exchange_strong(waiting, SlotState::kFinished, std::memory_order_acq_rel)) {
    s.bell.fetch_add(1, std::memory_order_seq_cst);
    if (s.sleeping.load(std::memory_order_seq_cst)) futex_wake(s.bell, 1);
    if (actions.latch == LatchEnd::kRelease) serve_if_free(line);
    return;
  }
  s.state.store(SlotState::kFree, std::memory_order_release);  // pairs with take_slot()
  if (actions.latch == LatchEnd::kRelease) return serve_if_free(line);
  if (actions.latch == LatchEnd::kToShared) return unlock_shared(line);
  unlock_exclusive(line);
}

}  // namespace coherence
