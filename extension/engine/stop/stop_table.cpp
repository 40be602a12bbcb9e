#include "extension/engine/stop/stop_table.hpp"

#include "bufmgr/base/wakeup.hpp"
#include "coherence/base/os.hpp"

namespace engine {

using coherence::SpinGuard;

namespace {

constexpr uint32_t kLookMs = 5;  // between two questions whether something else ends a stop

std::atomic<uint32_t>& word_of(std::atomic<StopState>& state) noexcept {
  return reinterpret_cast<std::atomic<uint32_t>&>(state);
}

}  // namespace

StopPoint stop_point_named(std::string_view name) noexcept {
  int point = 0;
  while (point < kStopPoints && name != kStopPointNames[point]) ++point;
  return StopPoint(point);
}

const char* stop_state_name(StopState state) noexcept {
  constexpr const char* kNames[] = {"free", "attached", "stands", "woken", "left"};
  return kNames[int(state)];
}

void StopTable::await_what_is_attached() noexcept {
  uint64_t awaited = 0;
  for (const Entry& entry : entry_)
    if (entry.state.load(std::memory_order_relaxed) == StopState::kAttached)
      awaited |= uint64_t{1} << int(entry.attachment.point);
  awaited_.store(awaited, std::memory_order_relaxed);
}

bool StopTable::attach(const StopAttachment& attachment) noexcept {
  SpinGuard hold(lock_);
  for (Entry& entry : entry_) {
    if (entry.state.load(std::memory_order_relaxed) != StopState::kFree) continue;
    entry.attachment = attachment;
    entry.arrivals = entry.stopped = 0;
    entry.age = ++ages_;
    entry.state.store(StopState::kAttached, std::memory_order_relaxed);
    await_what_is_attached();
    return true;
  }
  return false;
}

// The process frees the entry when it goes on: until then the word is its own.
bool StopTable::wakes(Entry& entry) noexcept {
  if (entry.state.load(std::memory_order_relaxed) != StopState::kStands) return false;
  entry.state.store(StopState::kWoken, std::memory_order_release);  // pairs with arrive()
  bufmgr::signal_wakeup(word_of(entry.state));
  return true;
}

bool StopTable::wakeup(StopPoint point, uint32_t process) noexcept {
  SpinGuard hold(lock_);
  for (Entry& entry : entry_)
    if (entry.attachment.point == point && (process == 0 || entry.stopped == process) && wakes(entry)) return true;
  return false;
}

int StopTable::detach(StopPoint point, uint32_t process) noexcept {
  SpinGuard hold(lock_);
  int found = 0;
  for (Entry& entry : entry_) {
    const StopState state = entry.state.load(std::memory_order_relaxed);
    if (state == StopState::kFree || state == StopState::kWoken || entry.attachment.point != point) continue;
    if (process != 0 && entry.attachment.process != process && entry.stopped != process) continue;
    ++found;
    if (!wakes(entry)) entry.state.store(StopState::kFree, std::memory_order_relaxed);
  }
  await_what_is_attached();
  return found;
}

bool StopTable::stands(StopPoint point, uint32_t process) noexcept {
  SpinGuard hold(lock_);
  for (const Entry& entry : entry_)
    if (entry.attachment.point == point && entry.state.load(std::memory_order_relaxed) == StopState::kStands &&
        (process == 0 || entry.stopped == process))
      return true;
  return false;
}

int StopTable::list(StopSight (&to)[kEntries]) noexcept {
  SpinGuard hold(lock_);
  int count = 0;
  for (const Entry& entry : entry_) {
    const StopState state = entry.state.load(std::memory_order_relaxed);
    if (state == StopState::kFree) continue;
    to[count++] = {
        .attachment = entry.attachment, .arrivals = entry.arrivals, .stopped = entry.stopped, .state = state};
  }
  return count;
}

// Counts the arrival; the attachment that it is to stand for, or null.  stop.one-arrival.
StopTable::Entry* StopTable::due(StopPoint point, uint32_t process) noexcept {
  SpinGuard hold(lock_);
  Entry* due = nullptr;
  for (Entry& entry : entry_) {
    if (entry.state.load(std::memory_order_relaxed) != StopState::kAttached || entry.attachment.point != point)
      continue;
    if (entry.attachment.process != 0 && entry.attachment.process != process) continue;
    if (++entry.arrivals >= entry.attachment.arrival && (due == nullptr || entry.age < due->age)) due = &entry;
  }
  if (due == nullptr) return nullptr;
  due->stopped = process;
  due->state.store(StopState::kStands, std::memory_order_relaxed);
  await_what_is_attached();
  return due;
}

void StopTable::arrive(StopPoint point, uint32_t process, StopStand& stand, uint32_t ms_max) noexcept {
  Entry* entry = due(point, process);
  if (entry == nullptr) return;
  stand.begins(point);
  const uint64_t until = coherence::monotonic_ns() + uint64_t{ms_max} * 1'000'000;
  // Pairs with wakes(): what the test has seen done before the wakeup is seen here.
  while (entry->state.load(std::memory_order_acquire) == StopState::kStands && !stand.ends() &&
         coherence::monotonic_ns() < until)
    bufmgr::wait_for_wakeup(word_of(entry->state), uint32_t(StopState::kStands), kLookMs);
  bool woken;
  {
    SpinGuard hold(lock_);
    woken = entry->state.load(std::memory_order_relaxed) == StopState::kWoken;
    entry->state.store(woken ? StopState::kFree : StopState::kLeft, std::memory_order_relaxed);
  }
  stand.ended(point, woken);
}

}  // namespace engine
