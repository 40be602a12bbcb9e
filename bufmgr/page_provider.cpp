#include "bufmgr/page_provider.hpp"

#include <algorithm>

#include "bufmgr/node_shared.hpp"
#include "bufmgr/verify_written.hpp"
#include "coherence/write_back_group.hpp"

namespace bufmgr {

using coherence::Line;

namespace {

constexpr int kEvictBatch = 32;
constexpr int kBatches = 4;
constexpr uint32_t kFramesAtOnce = 32;  // looked at between two checks for peers' requests

}  // namespace

bool PageProvider::run_once() {
  // The request before the push: another one that comes meanwhile is not forgotten.
  const bool wanted = pool_.gate_.take_push_request();
  (void)session_.push_redo();
  if (wanted) pool_.node_->ring();  // the message worker looks again
  bool worked = free_some();
  if (pool_.ring_.used() >= ring_mark(pool_.ring_)) worked |= shorten_ring();
  return worked;
}

bool PageProvider::free_some() {
  bool worked = false;
  const uint32_t enough = 2 * low_mark(pool_.frames());
  coherence::EvictionWindow window(session_.coherence_, *this);
  for (int batch = 0, round = 0; batch < kBatches; ++batch) {
    window.reap();
    const uint32_t free = pool_.free_.count() + uint32_t(window.under_way());
    if (free >= enough) break;
    // No more than that: a page that is evicted too early is missed later.
    const bool freed = evict_some(window, int(std::min<uint32_t>(kEvictBatch, enough - free)), round) > 0;
    worked |= freed;
    round += !freed;  // a few busy frames are no reason to take wanted ones
  }
  return worked;
}

int PageProvider::evict_some(coherence::EvictionWindow& window, int wanted, int round) {
  (void)session_.push_redo();  // changed pages leave behind it (log.redo-before-page)
  uint32_t proposed[kEvictBatch];
  wanted = std::min(wanted, kEvictBatch);
  const int count = session_.replacement_->propose(proposed, wanted, round);
  Line* lines[kEvictBatch];
  PageId pages[kEvictBatch];
  int candidates = 0;
  for (int i = 0; i < count; ++i) {
    Line& line = pool_.node_->line(proposed[i]);
    const PageId page = line.page();
    if (!page.valid() || std::find(lines, lines + candidates, &line) != lines + candidates) continue;
    lines[candidates] = &line;
    pages[candidates++] = page;
  }
  const int leaving = window.add(lines, pages, candidates);
  if (leaving == 0) return 0;
  session_.replacement_->evicted(leaving);
  session_.counts_.add(Count::kEvicted, uint64_t(leaving));
  return leaving;
}

// provider.unpublished-then-free, provider.free-per-batch
void PageProvider::take(Line& line, PageId page) noexcept {
  const uint32_t frame = pool_.node_->index_of(line);
  pool_.marks_.end(frame, page);
  pool_.table_.remove(page, frame);
  session_.coherence_.finish_evict(line);
  pool_.free_.push(frame);
}

bool PageProvider::shorten_ring() {
  const uint64_t step = pool_.ring_.data_bytes() / 4;
  const uint64_t before = pool_.ring_.tail();
  empty_ring(before + std::min(step, pool_.ring_.used()));
  return pool_.ring_.tail() != before;
}

// Frames of a part that begins at or behind the tail that has been found need not be looked at: their changes lie
// there, or later (frames.dirty-is-listed).
bool PageProvider::empty_ring(uint64_t position, Meanwhile meanwhile) {
  RedoRing& ring = pool_.ring_;
  DirtyFrames& dirty = pool_.dirty_;
  if (!ring.begin_emptying()) return false;
  (void)session_.push_redo();
  // Lines know of every record below this, and are listed; the tail must not pass a record that is being written, nor
  // one that is not in the pool.
  uint64_t tail = std::min(pool_.gate_.ring_complete(), ring.pushed());
  uint32_t passed = 0;
  const auto look = [&](uint32_t frame) {
    const uint64_t left = pool_.node_->line(frame).first_change();
    if (left == Line::kNoChange) {
      dirty.drop(frame);
      if (const uint64_t anew = pool_.node_->line(frame).first_change(); anew != Line::kNoChange)
        dirty.list(frame, std::max(anew, ring.tail()));
      return;
    }
    // Young, latched, or beyond the flushed log: its records stay, and so do later ones.  Or it has changed again.
    dirty.put_back(frame, std::max(left, ring.tail()));
    tail = std::min(tail, left);
  };
  coherence::WriteBackGroup group(session_.coherence_);
  uint32_t grouped[coherence::WriteBackGroup::kLinesMax];
  const auto run_group = [&] {
    group.run([&](int i, bool written) {
      if (written) session_.counts_.add(Count::kWrittenBack);
      look(grouped[i]);
    });
  };
  const auto visit = [&](uint32_t frame) {
    if (meanwhile == Meanwhile::kAttend && passed++ % kFramesAtOnce == 0) {
      run_group();  // a peer may ask for one of its pages
      session_.coherence().attend();
    }
    Line& line = pool_.node_->line(frame);
    const PageId page = line.page();
    const uint64_t first = line.first_change();
    if (first == Line::kNoChange || first >= std::min(position, tail)) return look(frame);
    if (!group.room_for(page)) run_group();
    grouped[group.size()] = frame;
    const auto added = group.add(line, page);
    if (!added || !*added) look(frame);
  };
  for (uint64_t part = dirty.part_of(ring.tail()); dirty.start_of(part) < tail; ++part) dirty.take(part, visit);
  run_group();
  // log.tail-at-record, log.push-keeps-bytes
  tail = std::max(std::min(tail, pool_.gate_.kept_from()), ring.tail());
#ifndef NDEBUG
  verify_written(pool_, session_, tail);
#endif
  ring.move_tail(session_.unordered_memory(), tail);
  ring.end_emptying();
  return tail >= position;
}

}  // namespace bufmgr
