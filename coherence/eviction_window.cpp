#include "coherence/eviction_window.hpp"

#include <bit>

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
  int leaving = 0, place = kNone;
  for (int i = 0; i < count; i++) {
    if (pages[i].node() != to) continue;
    if (place == kNone) {
      wait_for_room();  // before the line is latched
      place = groups_.take(to);
    }
    Line& line = *lines[i];
    Post release;
    if (!evictor_.begin_evict(line, pages[i], &release)) continue;
    leaving++;
    if (release == Post::kNone) {  // never fetched
      taker_.take(line, pages[i]);
      continue;
    }
    Group& group = groups_[place];
    group.member[group.size++] = {&line, evictor_.add_release(group.batch, line, release)};
    if (group.size < kLinesMax && group.batch.room() >= kReleaseOpsMax) continue;
    post(place);
    place = kNone;
  }
  if (place != kNone) groups_[place].size > 0 ? post(place) : groups_.give_back(place);
  return leaving;
}

// While too many are under way (eviction.few-under-way).
void EvictionWindow::wait_for_room() noexcept {
  while (!groups_.room()) {
    evictor_.memory().poll();
    reap();
  }
}

void EvictionWindow::post(int place) noexcept {
  Group& group = groups_[place];
  lines_ += group.size;
  evictor_.memory().post(group.batch);
  groups_.posted(place);
  reap();  // of shm, this one
}

void EvictionWindow::reap() noexcept {
  groups_.reap([this](int place) { end(place); });
}

void EvictionWindow::end(int place) noexcept {
  Group& group = groups_[place];
  lines_ -= group.size;
  const bool known = evictor_.memory().outcome(group.batch).ok();  // else the lines stay latched
  for (int m = 0; m < group.size && known; m++) {
    Line& line = *group.member[m].line;
    evictor_.end_evict(line, group.batch.op(group.member[m].atomic).old);
    taker_.take(line, line.page());
  }
  groups_.give_back(place);
}

void EvictionWindow::finish() noexcept {
  for (reap(); groups_.any(); reap()) evictor_.memory().poll();
}

}  // namespace coherence
