#include "coherence/eviction_window.hpp"

#include <bit>
#include <memory>

#include "coherence/session.hpp"

namespace coherence {
namespace {

constexpr int kReleaseOpsMax = 12;  // of a line: write-back ranges and the atomic

}  // namespace

EvictionWindow::EvictionWindow(Session& session, FrameTaker& taker) noexcept
    : evictor_(session.evictor_), taker_(taker) {}

// Memory node after memory node: a batch goes to one of them (transport.batch-in-order).
int EvictionWindow::add(Line* const* lines, const PageId* pages, int count) noexcept {
  uint64_t nodes = 0;
  for (int i = 0; i < count; i++) nodes |= uint64_t{1} << pages[i].node().value;
  int leaving = 0;
  for (; nodes; nodes &= nodes - 1)
    leaving += add_of(MemoryNodeId{uint8_t(std::countr_zero(nodes))}, lines, pages, count);
  return leaving;
}

int EvictionWindow::add_of(MemoryNodeId to, Line* const* lines, const PageId* pages, int count) noexcept {
  constexpr int kNone = -1;
  int leaving = 0, slot = kNone;
  for (int i = 0; i < count; i++) {
    if (pages[i].node() != to) continue;
    if (slot == kNone) {  // before the line is latched: this may wait
      slot = free_slot();
      std::construct_at(&slot_[slot], to);
    }
    Line& line = *lines[i];
    Post release;
    if (!evictor_.begin_evict(line, pages[i], &release)) continue;
    leaving++;
    if (release == Post::kNone) {  // never fetched
      taker_.take(line, pages[i]);
      continue;
    }
    Group& group = slot_[slot];
    group.member[group.size++] = {&line, evictor_.add_release(group.batch, line, release)};
    if (group.size < kLinesMax && group.batch.room() >= kReleaseOpsMax) continue;
    post(slot);
    slot = kNone;
  }
  if (slot != kNone && slot_[slot].size > 0) post(slot);
  return leaving;
}

// Waits while too many are under way (eviction.few-under-way).
int EvictionWindow::free_slot() noexcept {
  while (posted_ == kAll) {
    evictor_.memory().poll();
    reap();
  }
  return std::countr_one(posted_);
}

void EvictionWindow::post(int slot) noexcept {
  Group& group = slot_[slot];
  posted_ |= 1u << slot;
  lines_ += group.size;
  evictor_.memory().post(group.batch);
  reap();  // of shm, this one
}

void EvictionWindow::reap() noexcept {
  for (uint32_t left = posted_; left; left &= left - 1) {
    const int slot = std::countr_zero(left);
    if (slot_[slot].batch.done()) end(slot);
  }
}

void EvictionWindow::end(int slot) noexcept {
  Group& group = slot_[slot];
  posted_ &= ~(1u << slot);
  lines_ -= group.size;
  if (!evictor_.memory().outcome(group.batch)) return;  // the lines stay latched
  for (int m = 0; m < group.size; m++) {
    Line& line = *group.member[m].line;
    evictor_.end_evict(line, group.batch.op(group.member[m].atomic).old);
    taker_.take(line, line.page());
  }
}

void EvictionWindow::finish() noexcept {
  for (;;) {
    reap();
    if (!posted_) return;
    evictor_.memory().poll();
  }
}

}  // namespace coherence
