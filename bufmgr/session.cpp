#include "bufmgr/session.hpp"

#include <algorithm>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/mini_transaction.hpp"

namespace bufmgr {

namespace {

constexpr uint32_t kCompleteWaitMs = 10;  // coherence.bounded-sleeps

}  // namespace

const char* count_name(Count count) noexcept {
  static constexpr const char* kNames[] = {
      "fixes",        "peeks",       "copies",       "further_guards",    "restarts",
      "frames_taken", "frame_waits", "evicted",      "mini_transactions", "redo_bytes",
      "ring_waits",   "overdrafts",  "written_back", "pages_allocated",   "pages_freed",
      "dirtied"};
  static_assert(sizeof kNames / sizeof *kNames == kCounts);
  return kNames[int(count)];
}

Session::Session(BufferPool& pool, coherence::Node& node, coherence::SessionId id, Interrupts& interrupts, LogSink& log,
                 BufferCounts& counts, std::unique_ptr<Replacement> replacement)
    : pool_(pool),
      coherence_(node, id, &interrupts),
      interrupts_(interrupts),
      log_(log),
      counts_(counts),
      replacement_(std::move(replacement)),
      record_(new std::byte[2 * kMiniRecordMax]) {
  coherence_.adopt(ordered_);
}

Session::~Session() {
#ifndef NDEBUG
  VERIFY(held_ == 0 && reserved_ == 0);
#endif
  release_all();
}

coherence::Status Session::wait_ring_complete() noexcept {
  VERIFY(held_ == 0);
  while (complete_below_ < redo_end_ && pool_.gate_.ring_complete() < redo_end_) {
    interrupts_.waits(coherence::Wait::kRedoRing);
    const bool complete = pool_.gate_.wait_complete(redo_end_, kCompleteWaitMs);
    interrupts_.waits(coherence::Wait::kNone);
    if (complete) break;
    if (pool_.fenced()) return coherence::Errc::kFenced;
    if (interrupted()) return coherence::Errc::kInterrupted;
  }
  complete_below_ = std::max(complete_below_, redo_end_);
  return {};
}

RedoPush Session::begin_push() noexcept { return {pool_.gate_, pool_.ring_, id(), complete_below_}; }

coherence::Status Session::push_redo() noexcept {
  if (pool_.ring_.pushed() < pool_.ring_.head()) return begin_push().run(coherence_.memory());
  pool_.gate_.push(id(), coherence_.memory());  // it is in the pool; that it is, is said perhaps of less
  return {};
}

// What was seen of other sessions' changes has its place below the head by now.  Those that are at work before it wait
// for no latch and no peer, so this waits for them even under guards.
coherence::Status Session::push_what_was_seen() noexcept {
  const uint64_t seen = pool_.ring_.head();
  if (pool_.ring_.pushed() >= seen) return {};
  while (pool_.gate_.ring_complete() < seen) {
    if (pool_.gate_.wait_complete(seen, kCompleteWaitMs)) break;
    if (pool_.fenced()) return coherence::Errc::kFenced;
  }
  complete_below_ = std::max(complete_below_, seen);
  return begin_push().run(coherence_.memory());
}

void Session::release_all() noexcept {
  while (held_ > 0) {
    const Held last = ledger_[--held_];
    if (last.exclusive) {
      coherence_.unlock_exclusive(*last.line);
    } else {
      coherence_.unlock_shared(*last.line);
    }
  }
  if (reserved_ != 0) pool_.ring_.give_back(std::exchange(reserved_, 0));
}

void Session::HeldReport::tell(Out& out) const noexcept {
  for (int i = 0; i < session.held_ && i < kGuardsMax; ++i) {
    coherence::Text text;
    out.line(text.add("guard %d of session %u: %s", i, session.id().value,
                      session.ledger_[i].exclusive ? "exclusive" : "shared"));
    coherence::tell_line(out, session.coherence_.node(), *session.ledger_[i].line);
  }
}

#ifndef NDEBUG
WaitCheck::WaitCheck(Session& session, PageId wanted) noexcept
    : session_(session), claimed_(std::exchange(session.next_wait_, WaitOrder::kAlone)) {
  VERIFY(session.held_ == 0 || claimed_ != WaitOrder::kAlone);  // guards.ordered-waits
  for (int i = 0; i < session.held_; ++i)
    VERIFY(claimed_ != WaitOrder::kById || session.ledger_[i].line->page() < wanted);
}

LatchedPage WaitCheck::seen(const coherence::Line& line) const noexcept {
  const auto* header = reinterpret_cast<const PageHeader*>(session_.coherence_.node().frame(line));
  return {line.page(), header->type};
}

void WaitCheck::latched(const coherence::Line& wanted) const noexcept {
  for (int i = 0; i < session_.held_; ++i) VERIFY(in_order(claimed_, seen(*session_.ledger_[i].line), seen(wanted)));
}
#endif

static_assert(offsetof(PageHeader, version) == 0);  // coherence.refused-writer-noted

bool Session::look_at_holds(coherence::Line& line, PageId page) noexcept {
  uint64_t by = 0;
  if (!line.held() || !holds_->held_by_others(page, &by)) {
    if (line.refused_writer()) line.forget_refused_writer();
    return true;
  }
  line.note_refused_writer();
  coherence_.unlock_exclusive(line);
  held_by_ = {coherence_.node().id(), by};
  return false;
}

}  // namespace bufmgr
