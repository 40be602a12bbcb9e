// Frames come and go: assigning pages to lines, eviction in groups, write-back.
#include <bit>

#include "coherence/base/os.hpp"
#include "coherence/session.hpp"

namespace coherence {
namespace {

constexpr int kGroupMax = 16;
constexpr int kOpsPerLine = 12;  // write-back ranges and the atomic

}  // namespace

void Session::assign(Line& line, PageId page) {
  while (!try_latch(line)) (void)pause(1);  // a late comer looks at the page and goes again
  {
    SpinGuard guard(line.spin_, node_.fence_);
    VERIFY(!line.page().valid() && line.state_.op == LineOp::kIdle && line.state_.memo == Memo::kInvalid);
    line.page_.store(page.raw, std::memory_order_relaxed);
    line.lsn_.store(0, std::memory_order_relaxed);
    line.first_change_.store(Line::kNoChange, std::memory_order_relaxed);
    line.taken_to_write_.store(false, std::memory_order_relaxed);
    for (auto& d : line.dirty_) d.store(0, std::memory_order_relaxed);
  }
  end_latch(line, LatchEnd::kRelease, Memo::kInvalid);
}

// Memory node after memory node: a batch goes to one of them (T1).
int Session::try_evict(Line* const* lines, const PageId* pages, bool* evicted, int count) {
  uint64_t nodes = 0;
  for (int i = 0; i < count; i++) nodes |= uint64_t{1} << pages[i].node().value;
  int done = 0;
  for (; nodes; nodes &= nodes - 1)
    done += evict_on(MemoryNodeId{uint8_t(std::countr_zero(nodes))}, lines, pages, evicted, count);
  return done;
}

int Session::evict_on(MemoryNodeId to, Line* const* lines, const PageId* pages, bool* evicted, int count) {
  struct Member {
    int index;
    int atomic;
  } group[kGroupMax];
  int done = 0;
  for (int next = 0; next < count;) {
    Batch batch(to);
    int members = 0;
    for (; next < count && members < kGroupMax && batch.room() >= kOpsPerLine; next++) {
      if (pages[next].node() != to) continue;
      Line& line = *lines[next];
      evicted[next] = false;
      if (node_.fenced() || !try_latch(line)) continue;
      Actions actions;
      bool quiet;
      {
        SpinGuard guard(line.spin_, node_.fence_);
        const LineState& s = line.state_;
        quiet = line.page() == pages[next] && s.op == LineOp::kIdle && !s.parked_count && !s.holds_shared &&
                !s.holds_exclusive;
        bool logged = may_leave(line);
        if (quiet && !logged && node_.horizon_) node_.horizon_->request_flush(line.lsn());
        quiet &= logged;
        if (quiet && s.memo != Memo::kInvalid) actions = step_line(line, {.kind = Event::Kind::kEvict});
      }
      if (!quiet) {
        end_latch(line, LatchEnd::kRelease, line.memo());
        settle(line);
        continue;
      }
      if (actions.post == Post::kNone) {  // never fetched
        evicted[next] = true;
        done++;
        continue;
      }
      bool dirty = line.is_dirty();
      counters_.add(dirty ? Counter::kEvictDirty : Counter::kEvictClean);
      ++moved_;
      if (actions.post == Post::kRelease) add_write_back(batch, line);
      PoolAddress word = node_.pool_.latch_address(pages[next]);
      int atomic = batch.faa(
          word, actions.post == Post::kRelease ? LatchWord::drop_holder(node_.id_) : LatchWord::drop_reader(node_.id_));
      group[members++] = {next, atomic};
    }
    if (members == 0) continue;
    memory_.post(batch);
    memory_.wait(batch);
    VERIFY(batch.known());
    for (int m = 0; m < members; m++) {
      Line& line = *lines[group[m].index];
      written_back(line);
      {
        SpinGuard guard(line.spin_, node_.fence_);
        Actions end = step_line(line, {.kind = Event::Kind::kBatchDone, .old = batch.op(group[m].atomic).old});
        VERIFY(end.finished && end.latch == LatchEnd::kToCaller);
      }
      end_latch(line, LatchEnd::kToCaller, Memo::kInvalid);
      evicted[group[m].index] = true;
      done++;
    }
  }
  return done;
}

void Session::finish_evict(Line& line) {
  {
    SpinGuard guard(line.spin_, node_.fence_);
    VERIFY(line.word().exclusive() && line.state_.op == LineOp::kIdle && line.state_.memo == Memo::kInvalid);
    line.page_.store(PageId{}.raw, std::memory_order_relaxed);
  }
  end_latch(line, LatchEnd::kRelease, Memo::kInvalid);
}

Status Session::write_back(Line& line, PageId page) {
  if (node_.fenced()) return Errc::kFenced;
  if (!hit_shared(line)) return Errc::kWouldBlock;
  Status result;
  if (line.page() != page)
    result = Errc::kRestart;
  else if (line.memo() != Memo::kModified || !line.is_dirty())
    result = Status();
  else if (!may_leave(line)) {
    node_.horizon_->request_flush(line.lsn());
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
