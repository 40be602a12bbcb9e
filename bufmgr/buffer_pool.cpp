// BufferPool: from a page's number to a guard on it.
#include "bufmgr/buffer_pool.hpp"

#include "bufmgr/base/wakeup.hpp"
#include "bufmgr/copy.hpp"
#include "bufmgr/node_shared.hpp"
#include "bufmgr/page_provider.hpp"

namespace bufmgr {

using coherence::Errc;
using coherence::Line;

namespace {

constexpr int kOptimisticTries = 3;  // copies tried beside a writer before the session queues up
constexpr uint32_t kFrameWaitMs = 2;

}  // namespace

Line* BufferPool::find(PageId page) noexcept {
  const uint32_t frame = table_.find(page, [&](uint32_t f) { return node_->line(f).page() == page; });
  return frame == kNoFrame ? nullptr : &node_->line(frame);
}

// The page's line, brought here if it is not.  The look-up is inline: it is all that a hit does.
[[gnu::always_inline]] inline Result<Line*> BufferPool::line_of(Session& session, PageId page) {
  if (Line* line = find(page)) return line;
  return bring_line(session, page);
}

// Always inline: a guard that goes through memory on its way to the caller is read back wider than it was written,
// which costs as much as the latch.
template <class Guard>
[[gnu::always_inline]] inline Guard BufferPool::make_guard(Session& session, Line& line, PageId page, bool exclusive) {
  session.note_guard(line, exclusive);
  session.note_access(Count::kFixes);
  marks_.touch(node_->index_of(line));
  Guard guard;
  guard.session_ = &session;
  guard.line_ = &line;
  guard.bytes_ = node_->frame(line);
  guard.id_ = page;
  return guard;
}

template <class Guard, class Lock>
Result<Guard> BufferPool::fix(Session& session, PageId page, const Lock& lock, bool exclusive, Others others) {
  const WaitCheck check(session, page);
  for (;;) {
    const auto found = line_of(session, page);
    if (!found) return found.error();
    Line* line = *found;
    VERIFY(!session.holds(*line));  // guards.one-latch-per-page: it would wait for itself
    const Status locked = lock(*line);
    if (locked) {
      if (exclusive && !session.may_change(*line, page, others)) return Errc::kHeld;  // holds.checked-when-latched
      check.latched(*line);
      return make_guard<Guard>(session, *line, page, exclusive);
    }
    if (locked.error() == Errc::kHeld) session.held_by_ = session.coherence_.holder();
    if (locked.error() != Errc::kRestart) return locked.error();
    session.counts_.add(Count::kRestarts);
  }
}

Result<SharedGuard> BufferPool::fix_shared(Session& session, PageId page, Intent intent) {
  return fix<SharedGuard>(
      session, page, [&](Line& line) { return session.coherence_.lock_shared(line, page, intent); }, false,
      Others::kChecked);
}

Result<ExclusiveGuard> BufferPool::fix_exclusive(Session& session, PageId page, Others others) {
  return fix<ExclusiveGuard>(
      session, page, [&](Line& line) { return session.coherence_.lock_exclusive(line, page); }, true, others);
}

Result<SharedGuard> BufferPool::try_shared(Session& session, PageId page) {
  Line* line = find(page);
  if (line == nullptr || !session.coherence_.try_lock_shared(*line, page)) return Errc::kWouldBlock;
  return make_guard<SharedGuard>(session, *line, page, false);
}

Result<ExclusiveGuard> BufferPool::try_exclusive(Session& session, PageId page) {
  Line* line = find(page);
  if (line == nullptr || !session.coherence_.try_lock_exclusive(*line, page)) return Errc::kWouldBlock;
  if (!session.may_change(*line, page)) return Errc::kHeld;
  return make_guard<ExclusiveGuard>(session, *line, page, true);
}

OptimisticGuard BufferPool::peek(Session& session, PageId page) noexcept {
  OptimisticGuard guard;
  Line* line = find(page);
  if (line == nullptr || !line->begin_optimistic(page, &guard.version_)) return guard;
  const uint32_t frame = node_->index_of(*line);
  marks_.touch(frame);
  session.note_access(Count::kPeeks);
  guard.line_ = line;
  guard.bytes_ = node_->frame(frame);
  guard.id_ = page;
  return guard;
}

Result<OptimisticGuard> BufferPool::fix_optimistic(Session& session, PageId page, Intent intent) {
  const WaitCheck check(session, page);  // a hit, too: it is a hit by chance
  for (;;) {
    if (OptimisticGuard guard = peek(session, page)) return guard;
    check.again();
    auto turn = fix_shared(session, page, intent);
    if (!turn) return turn.error();
    session.note_access_again();
    // No session writes while this one holds the latch.
    if (OptimisticGuard guard = peek(session, page)) return guard;
    turn->release();
    if (session.interrupted()) return Errc::kInterrupted;
  }
}

template <class Copy>
Status BufferPool::copy_with(Session& session, PageId page, Intent intent, const Copy& copy) {
  const WaitCheck check(session, page);
  session.counts_.add(Count::kCopies);
  for (int i = 0; i < kOptimisticTries; ++i) {
    const OptimisticGuard guard = peek(session, page);
    if (!guard) break;
    copy(guard.bytes_);
    if (guard.validate()) return {};
    session.note_access_again();  // a next one follows
  }
  check.again();
  auto turn = fix_shared(session, page, intent);
  if (!turn && turn.error() == Errc::kHeld) return copy_held(session, page, copy);
  if (!turn) return turn.error();
  copy(turn->bytes_);
  return {};
}

// The session sees the page once, as it is now (bufmgr.held-page-copied).
template <class Copy>
Status BufferPool::copy_held(Session& session, PageId page, const Copy& copy) {
  for (;;) {
    const auto found = line_of(session, page);
    if (!found) return found.error();
    Line* line = *found;
    coherence::ReadAccess how;
    const Status seen = session.coherence_.begin_read(*line, page, &how);
    if (seen) {
      session.note_access(Count::kFixes);
      copy(node_->frame(*line));
      session.coherence_.end_read(*line, how);
      return {};
    }
    if (seen.error() != Errc::kRestart) return seen.error();
    session.counts_.add(Count::kRestarts);
  }
}

Status BufferPool::copy_page(Session& session, PageId page, void* to) {
  return copy_with(session, page, Intent::kRead, [to](const std::byte* from) { copy_whole_page(to, from); });
}

Status BufferPool::copy_parts(Session& session, PageId page, std::byte* to, Intent intent) {
  return copy_with(session, page, intent, [to](const std::byte* from) { copy_page_parts(to, from); });
}

Result<ExclusiveGuard> BufferPool::upgrade(Session& session, const OptimisticGuard& seen) {
  const WaitCheck check(session, seen.id());
  if (!seen) return Errc::kRestart;
  const Status quick = session.coherence_.try_upgrade(*seen.line_, seen.id(), seen.version_);
  if (quick) {
    if (!session.may_change(*seen.line_, seen.id())) return Errc::kHeld;
    session.note_access_again();
    return make_guard<ExclusiveGuard>(session, *seen.line_, seen.id(), true);
  }
  if (quick.error() != Errc::kWouldBlock) return quick.error();
  // The node must ask its peers, which moves the line's version; the page's own version moves only by a change.
  const uint64_t version = load_page_word(seen.bytes_ + offsetof(PageHeader, version));
  if (!seen.validate()) return Errc::kRestart;
  check.again();
  auto guard = fix_exclusive(session, seen.id());
  if (guard) session.note_access_again();
  if (guard && guard->header().version != version) return Errc::kRestart;
  return guard;
}

Result<Line*> BufferPool::bring_line(Session& session, PageId page) {
  GCL_TRY(pool_->look_for(page));
  auto frame = take_frame(session);
  if (!frame) return frame.error();
  Line& line = node_->line(*frame);
  // Before the table's lock: frames.no-wait-in-bucket.
  if (const Status latched = session.coherence_.begin_assign(line); !latched) {
    free_.push(*frame);
    return latched.error();
  }
  marks_.begin(*frame, page);
  const uint32_t other = table_.insert(
      page, *frame, [&](uint32_t f) { return node_->line(f).page() == page; },
      [&] { session.coherence_.name(line, page); });
  session.coherence_.end_assign(line);  // from now on it may be evicted
  if (other != kNoFrame) {
    free_.push(*frame);  // another session was faster
    return &node_->line(other);
  }
  session.counts_.add(Count::kFramesTaken);
  return &line;
}

Result<uint32_t> BufferPool::take_frame(Session& session) {
  if (free_.count() <= PageProvider::low_mark(frames())) call_provider();
  for (int round = 0;; ++round) {
    if (const uint32_t frame = free_.pop(); frame != kNoFrame) return frame;
    if (round == 0) session.counts_.add(Count::kFrameWaits);
    if (fenced()) return Errc::kFenced;
    if (PageProvider(*this, session).evict_some(PageProvider::kEvictOnTheSpot, round) > 0) continue;
    if (session.interrupted()) return Errc::kInterrupted;
    if (round <= 2) continue;
    session.interrupts_.waits(coherence::Wait::kFrame);
    nap(kFrameWaitMs);
    session.interrupts_.waits(coherence::Wait::kNone);
  }
}

}  // namespace bufmgr
