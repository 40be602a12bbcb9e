#include "coherence/session/evictor.hpp"

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/session/write_back.hpp"

namespace coherence {

Status Evictor::begin_assign(Line& line) {
  while (!LatchTable::try_latch(line)) GCL_TRY(waiting_.pause(1));  // a late session looks at the page and leaves
  LineFields& f = fields(line);
  SpinGuard guard(f.spin, session_.node.fence);
  VERIFY(!line.page().valid() && f.state.op == LineOp::kIdle && f.state.msi == MsiState::kInvalid);
  f.state.passed_to = NodeId();  // another page's
  f.lsn.store(0, std::memory_order_relaxed);
  f.first_change.store(Line::kNoChange, std::memory_order_relaxed);
  f.taken_to_write.store(false, std::memory_order_relaxed);
  for (auto& d : f.dirty) d.store(0, std::memory_order_relaxed);
  f.all_dirty.store(false, std::memory_order_relaxed);
  return {};
}

bool Evictor::begin_evict(Line& line, PageId page, Post* release) noexcept {
  if (session_.node.fenced() || !LatchTable::try_latch(line)) return false;
  Actions actions;
  bool quiet;
  {
    const LineState& s = fields(line).state;
    SpinGuard guard(fields(line).spin, session_.node.fence);
    quiet = line.page() == page && s.op == LineOp::kIdle && !s.parked_count && !s.holds_shared && !s.holds_exclusive;
    const bool may = driver_.may_leave(line);
    if (quiet && !may) server_.ask_for_log(line);
    quiet &= may;
    if (quiet && s.msi != MsiState::kInvalid) actions = driver_.step_line(line, {.kind = Event::Kind::kEvict});
  }
  if (!quiet) {
    latches_.end_latch(line, LatchEnd::kRelease, line.msi());
    server_.serve_beside_window(line);
    return false;
  }
  *release = actions.post;
  return true;
}

int Evictor::add_release(Batch& batch, Line& line, Post release) noexcept {
  session_.counters.add(line.is_dirty() ? Counter::kEvictDirty : Counter::kEvictClean);
  ++session_.moved;
  const NodeParts& node = session_.node;
  if (release == Post::kRelease) add_write_back(node, batch, line);
  return batch.faa(node.pool.latch_address(line.page()),
                   release == Post::kRelease ? LatchWord::drop_owner(node.id) : LatchWord::drop_reader(node.id));
}

// The line's batch is complete: only now are the bytes in the pool, and the redo of their changes is needed no longer
// (eviction.latched-until-complete).
void Evictor::end_evict(Line& line, uint64_t old) noexcept {
  written_back(line);
  {
    SpinGuard guard(fields(line).spin, session_.node.fence);
    Actions end = driver_.step_line(line, {.kind = Event::Kind::kBatchDone, .old = old});
    VERIFY(end.finished && end.latch == LatchEnd::kToCaller);
  }
  latches_.end_latch(line, LatchEnd::kToCaller, MsiState::kInvalid);
}

void Evictor::finish_evict(Line& line) {
  {
    LineFields& f = fields(line);
    SpinGuard guard(f.spin, session_.node.fence);
    VERIFY(line.word().exclusive() && f.state.op == LineOp::kIdle && f.state.msi == MsiState::kInvalid);
    f.page.store(PageId{}.raw, std::memory_order_relaxed);
    f.holding.store(0, std::memory_order_relaxed);
  }
  latches_.end_latch(line, LatchEnd::kRelease, MsiState::kInvalid);
}

// A session that writes has taken the dirty marks, long before its batch is complete: without `writing` a clean line
// says nothing of what the pool has (eviction.one-writer).
Result<bool> Evictor::begin_write_back(Line& line, PageId page) noexcept {
  if (line.page() != page) return Errc::kRestart;
  std::atomic<bool>& writing = fields(line).writing;
  if (writing.exchange(true, std::memory_order_acquire)) return Errc::kWouldBlock;
  const bool changed = line.msi() == MsiState::kModified && line.is_dirty();
  if (changed && driver_.may_leave(line)) return true;
  writing.store(false, std::memory_order_release);
  if (!changed) return false;
  server_.ask_for_log(line);
  return Errc::kWouldBlock;
}

void Evictor::add_changes(Batch& batch, Line& line) noexcept { add_write_back(session_.node, batch, line); }

void Evictor::end_write_back(Line& line, bool known) noexcept {
  if (known) {
    written_back(line);
    session_.counters.add(Counter::kWriteBacks);
    ++session_.moved;
  }
  fields(line).writing.store(false, std::memory_order_release);
}

}  // namespace coherence
