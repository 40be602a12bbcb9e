// Frames come and go: assigning pages to lines, what EvictionWindow does to each, write-back.
#include "coherence/base/os.hpp"
#include "coherence/eviction_window.hpp"
#include "coherence/session.hpp"

namespace coherence {

Status Session::begin_assign(Line& line) {
  while (!try_latch(line)) GCL_TRY(pause(1));  // a late comer looks at the page and goes again
  SpinGuard guard(line.spin_, node_.fence_);
  VERIFY(!line.page().valid() && line.state_.op == LineOp::kIdle && line.state_.msi == MsiState::kInvalid);
  line.state_.passed_to = NodeId();  // another page's
  line.lsn_.store(0, std::memory_order_relaxed);
  line.first_change_.store(Line::kNoChange, std::memory_order_relaxed);
  line.taken_to_write_.store(false, std::memory_order_relaxed);
  for (auto& d : line.dirty_) d.store(0, std::memory_order_relaxed);
  return {};
}

// Whoever sees it under the spinlock has that after begin_assign() had it, and sees what was done there.
void Session::name(Line& line, PageId page) noexcept { line.page_.store(page.raw, std::memory_order_relaxed); }

void Session::end_assign(Line& line) noexcept { end_latch(line, LatchEnd::kRelease, MsiState::kInvalid); }

Status Session::try_evict(Line& line, PageId page) {
  struct : FrameTaker {
    void take(Line&, PageId) noexcept override {}  // the caller has it
  } taker;
  EvictionWindow window(*this, taker);
  Line* one = &line;
  return window.add(&one, &page, 1) == 1 ? Status() : Errc::kWouldBlock;
}

// Latches the line and begins its eviction, unless it is busy.  `*release`: what gives the page up, kNone if it was
// never fetched.
bool Session::begin_evict(Line& line, PageId page, Post* release) noexcept {
  if (node_.fenced() || !try_latch(line)) return false;
  Actions actions;
  bool quiet;
  {
    SpinGuard guard(line.spin_, node_.fence_);
    const LineState& s = line.state_;
    quiet = line.page() == page && s.op == LineOp::kIdle && !s.parked_count && !s.holds_shared && !s.holds_exclusive;
    const bool may = may_leave(line);
    if (quiet && !may) ask_for_log(line);
    quiet &= may;
    if (quiet && s.msi != MsiState::kInvalid) actions = step_line(line, {.kind = Event::Kind::kEvict});
  }
  if (!quiet) {
    end_latch(line, LatchEnd::kRelease, line.msi());
    serve_if_free(line);
    return false;
  }
  *release = actions.post;
  return true;
}

// Returns the place of the atomic.
int Session::add_release(Batch& batch, Line& line, Post release) noexcept {
  counters_.add(line.is_dirty() ? Counter::kEvictDirty : Counter::kEvictClean);
  ++moved_;
  if (release == Post::kRelease) add_write_back(batch, line);
  return batch.faa(node_.pool_.latch_address(line.page()),
                   release == Post::kRelease ? LatchWord::drop_holder(node_.id_) : LatchWord::drop_reader(node_.id_));
}

// Its batch is complete: only now are the bytes in the pool, and the redo of their changes is needed no longer (I19).
void Session::end_evict(Line& line, uint64_t old) noexcept {
  written_back(line);
  {
    SpinGuard guard(line.spin_, node_.fence_);
    Actions end = step_line(line, {.kind = Event::Kind::kBatchDone, .old = old});
    VERIFY(end.finished && end.latch == LatchEnd::kToCaller);
  }
  end_latch(line, LatchEnd::kToCaller, MsiState::kInvalid);
}

void Session::finish_evict(Line& line) {
  {
    SpinGuard guard(line.spin_, node_.fence_);
    VERIFY(line.word().exclusive() && line.state_.op == LineOp::kIdle && line.state_.msi == MsiState::kInvalid);
    line.page_.store(PageId{}.raw, std::memory_order_relaxed);
  }
  end_latch(line, LatchEnd::kRelease, MsiState::kInvalid);
}

Status Session::write_back(Line& line, PageId page) {
  if (node_.fenced()) return Errc::kFenced;
  if (!hit_shared(line)) return Errc::kWouldBlock;
  Status result;
  if (line.page() != page)
    result = Errc::kRestart;
  else if (line.msi() != MsiState::kModified || !line.is_dirty())
    result = Status();
  else if (!may_leave(line)) {
    ask_for_log(line);
    result = Errc::kWouldBlock;
  } else if (line.writing_.exchange(1, std::memory_order_acquire) != 0) {
    result = Errc::kWouldBlock;
  } else {
    Batch batch(page.node());
    add_write_back(batch, line);
    memory_.post(batch);
    memory_.wait(batch);
    VERIFY(batch.known());
    written_back(line);
    counters_.add(Counter::kWriteBacks);
    ++moved_;
    line.writing_.store(0, std::memory_order_release);
  }
  unlock_shared(line);
  return result;
}

}  // namespace coherence
