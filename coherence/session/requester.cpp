#include "coherence/session/requester.hpp"

#include <algorithm>

#include "coherence/base/os.hpp"
#include "coherence/base/racy_copy.hpp"
#include "coherence/base/verify.hpp"

namespace coherence {
namespace {

// Where the word is near, a node that refuses may just have lost the CPU, to the requester.  Over a network a requester
// that comes too late each time, as the page moves on, must not be slowed down.
constexpr uint32_t kRoundsOverNetwork = 1'000;
// It pauses twice as long each time, so that it asks few times however long the owner has no CPU, and waits at most
// twice as long as it must.
constexpr uint32_t kPauseMsMax = 8;
constexpr uint64_t kStandBackSliceNs = 200'000;
constexpr uint64_t kGrantSliceNs = 5'000;
constexpr uint64_t kResendSpinNs = 20'000;  // what is shorter than a sleep would be is spun

// Of a page that this node had, and gave up to a writer that was refused before: whether it comes back unchanged
// (coherence.refused-writer-noted).  Costs nothing unless such a writer is noted.  REQUIRES: the line's X latch.
class RefusedWriter {
 public:
  RefusedWriter(Line& line, const std::byte* frame)
      : line_(line), frame_(frame), noted_(line.refused_writer() && line.msi() == MsiState::kInvalid) {
    if (noted_) before_ = changes();
  }
  // REQUIRES: the page has come, and the caller has a latch on it.
  void page_has_come() const {
    if (noted_ && changes() != before_) line_.forget_refused_writer();
  }

 private:
  uint64_t changes() const {
    uint64_t count;
    racy_copy(&count, frame_, sizeof count);
    return count;
  }
  Line& line_;
  const std::byte* const frame_;
  const bool noted_;
  uint64_t before_ = 0;
};

}  // namespace

Status Requester::lock(Line& line, PageId page, Want want, Intent intent, ReadAccess* how) {
  const Status result = enter(line, page, want, intent, how);
  server_.finish();
  return result;
}

Status Requester::enter(Line& line, PageId page, Want want, Intent intent, ReadAccess* how) {
  const bool exclusive = want == Want::kExclusive;
  if (how) *how = ReadAccess::kShared;
  for (;;) {
    if (line.page() != page) return Errc::kRestart;
    if (session_.node.fenced()) return Errc::kFenced;
    if (!session_.messenger.reach_all()) return Errc::kNoMemory;
    if (fields(line).stand_back_until.load(std::memory_order_relaxed) != 0) GCL_TRY(stand_back(line));
    switch (latches_.try_enter(line, exclusive, true)) {
      case LatchTable::Entry::kEntered:
        if (line.page() == page) return {};
        unlock(line, exclusive);
        return Errc::kRestart;
      case LatchTable::Entry::kFetch: {
        auto fetched = fetch(line, page, want, &intent, how);
        if (!fetched) return fetched.error();
        if (*fetched == Fetched::kDone) return {};
        break;
      }
      case LatchTable::Entry::kBlocked:
        GCL_TRY(wait_local(line, exclusive));
        break;
    }
  }
}

// REQUIRES: the line's X latch, which is the caller's in the end, or free.
Result<Requester::Fetched> Requester::fetch(Line& line, PageId page, Want want, Intent* intent, ReadAccess* how) {
  const bool exclusive = want == Want::kExclusive;
  const bool in_flight = session_.node.grant_in_flight(line);  // a share: the granting node is not done with the word
  RequestSlot* slot = !in_flight && line.page() == page ? take_slot() : nullptr;
  if (!slot) {
    latches_.end_latch(line, LatchEnd::kRelease, line.msi());
    server_.serve_if_free(line);
    if (in_flight) GCL_TRY(await_grant(line));
    if (!in_flight && line.page() == page) GCL_TRY(waiting_.pause(server_.poll() ? 0 : 1));
    return Fetched::kAgain;
  }
  // A reader's intent counts if it came true when this node last had the page for it.
  const bool intends =
      *intent == Intent::kWrite && !fields(line).taken_to_write.exchange(true, std::memory_order_relaxed);
  const bool own = exclusive || intends;
  const Event::Kind kind = own                   ? Event::Kind::kFetchExclusive
                           : want == Want::kRead ? Event::Kind::kFetchCopy
                                                 : Event::Kind::kFetchShared;
  const RefusedWriter refused(line, session_.node.frame(line));
  while (!driver_.has_room()) server_.poll();
  server_.after(line, driver_.start(line, *slot, kind));
  Outcome outcome;
  GCL_TRY(await(line, *slot, &outcome));
  if (outcome != Outcome::kHeld) refused.page_has_come();
  if (outcome == Outcome::kHeld && own == exclusive) return Errc::kHeld;
  if (outcome == Outcome::kHeld) {  // a read is allowed, perhaps
    *intent = Intent::kRead;
    return Fetched::kAgain;
  }
  if (outcome == Outcome::kCopied) {
    VERIFY(how != nullptr);  // only begin_read() gets a copy
    *how = ReadAccess::kCopied;
  }
  if (own && !exclusive) latches_.end_latch(line, LatchEnd::kToShared, line.msi());
  return Fetched::kDone;
}

Status Requester::try_lock(Line& line, PageId page, bool exclusive) {
  if (line.page() != page) return Errc::kRestart;
  if (latches_.try_enter(line, exclusive, false) != LatchTable::Entry::kEntered) return Errc::kWouldBlock;
  if (line.page() == page) return {};
  unlock(line, exclusive);
  return Errc::kRestart;
}

Status Requester::wait_local(Line& line, bool exclusive) {
  const uint32_t begun = latches_.begin_wait(line, exclusive);
  help_if_asked();
  Status ok = server_.poll() ? waiting_.pause(0) : latches_.wait(line, exclusive, begun);
  if (!ok) {  // the waker may count on this session to take the latch and free it again
    LatchTable::end_promise(line);
    server_.serve_if_free(line);
  }
  return ok;
}

// Waits until the word has an owner, which the requester then asks, or the time is over (coherence.readers-stand-back).
// Over a network it does not look at the word.  Only a miss waits.
Status Requester::stand_back(Line& line) {
  auto& stand_back_until = fields(line).stand_back_until;
  const uint64_t until = stand_back_until.load(std::memory_order_relaxed);
  const PageId page = line.page();
  if (!page.valid()) return Errc::kRestart;
  bool waited = false;
  for (uint64_t now = monotonic_ns(); now < until; now = monotonic_ns()) {
    if (line.word().msi() != MsiState::kInvalid || line.word().exclusive()) return {};
    if (session_.word_is_near) {
      const auto word = session_.memory.load(session_.node.pool.latch_address(page));
      if (!word) return word.error();
      if (LatchWord{*word}.has_owner()) break;
    }
    if (!waited) session_.counters.add(Counter::kStoodBack);
    waited = true;
    help_if_asked();
    if (!server_.poll()) nap(std::min(until - now, kStandBackSliceNs));
    GCL_TRY(waiting_.pause(0));
  }
  uint64_t over = until;  // unless the node makes way again
  stand_back_until.compare_exchange_strong(over, 0, std::memory_order_relaxed);
  return {};
}

// Waits until the granting node's batch is complete, some microseconds (coherence.early-grant-bound).
Status Requester::await_grant(Line& line) {
  while (session_.node.grant_in_flight(line)) {
    help_if_asked();
    if (!server_.poll()) nap(kGrantSliceNs);
    GCL_TRY(waiting_.pause(0));
  }
  return {};
}

// Null: all are busy with abandoned operations.
RequestSlot* Requester::take_slot() noexcept {
  for (RequestSlot& s : session_.slot.slot)
    if (s.state.load(std::memory_order_acquire) == SlotState::kFree) return &s;  // pairs with ProtocolDriver::finish()
  return nullptr;
}

// Waits for the operation that start() began; afterwards the latch is the caller's (coherence.one-operation), unless it
// is left to the worker (session.operation-outlives-caller).
Status Requester::await(Line& line, RequestSlot& slot, Outcome* outcome) {
  using Replies = ProtocolDriver::Replies;
  for (uint32_t rounds = 0, pause_ms = 1;;) {
    uint32_t seen = slot.wakeup.load(std::memory_order_acquire);
    server_.poll();
    if (slot.state.load(std::memory_order_acquire) == SlotState::kFinished)
      break;  // pairs with ProtocolDriver::finish()
    const auto [moved, left] = driver_.collect(line);
    server_.after(line, left);
    const uint32_t rounds_max = session_.word_is_near ? ProtocolDriver::kRoundsWithoutPause : kRoundsOverNetwork;
    const bool tired = moved == Replies::kRefusals && ++rounds > rounds_max;
    const bool pauses = tired && !line.word().pending() && !server_.under_way();
    Status ok = waiting_.pause(pauses ? pause_ms : 0);
    if (pauses) pause_ms = std::min(pause_ms * 2, kPauseMsMax);
    if (!ok) {
      if (!abandon(slot)) break;
      return ok;
    }
    if (moved == Replies::kTooEarly) {
      wait_to_resend(slot);
      continue;
    }
    if (moved != Replies::kNone) continue;
    if (session_.peers_asked()) {
      server_.help();
      continue;
    }
    if (server_.under_way()) continue;
    slot.sleeping.store(1, std::memory_order_seq_cst);  // pairs with the load in Messenger::reply(): one sees the other
    if (slot.wakeup.load(std::memory_order_seq_cst) == seen) {
      session_.counters.add(Counter::kPeerWaits);
      waiting_.sleep_on(slot.wakeup, seen, Wait::kPeer);
    }
    slot.sleeping.store(0, std::memory_order_relaxed);
  }
  *outcome = slot.outcome.load(std::memory_order_relaxed);
  if (*outcome == Outcome::kHeld)
    holder_ = {NodeId{slot.held_at.load(std::memory_order_relaxed)}, slot.held.load(std::memory_order_relaxed)};
  slot.state.store(SlotState::kFree, std::memory_order_relaxed);
  return {};
}

// Leaves the operation to the worker; false: it is over.
bool Requester::abandon(RequestSlot& slot) noexcept {
  SlotState waiting = SlotState::kWaiting;
  if (!slot.state.compare_exchange_strong(waiting, SlotState::kAbandoned, std::memory_order_seq_cst)) return false;
  session_.counters.add(Counter::kAbandoned);
  ArenaHeader& arena = *session_.node.arena;
  const auto index = uint32_t(session_.id.value * kSlotsPerSession + (&slot - session_.slot.slot));
  arena.abandoned[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_seq_cst);
  arena.abandoned_any.store(1, std::memory_order_seq_cst);
  session_.node.ring_worker();
  return true;
}

void Requester::wait_to_resend(const RequestSlot& slot) noexcept {
  help_if_asked();
  const uint64_t at = slot.resend_at.load(std::memory_order_relaxed), now = monotonic_ns();
  if (at > now + kResendSpinNs && !server_.under_way()) nap(at - now);
}

}  // namespace coherence
