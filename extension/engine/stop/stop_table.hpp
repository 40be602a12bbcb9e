// StopTable: which arrivals at stop points are to stop, and which processes stand there.  A node has one, in memory
// that its processes share; zeroed is empty.
//
//   test:     attach({point, process, 1});  until stands(point, process);  ...;  wakeup(point, process)
//   process:  if (table.awaited(point)) table.arrive(point, me, stand)      // StopHost::reached()
//
// stop.one-arrival: An attachment stops one arrival, the n-th of those that it is for; later ones pass.  Where one
//     arrival is due for two attachments, the older one stops it.
// stop.left-is-told: An attachment that was not woken (its process was interrupted, or stood too long) is kLeft until
//     it is detached, and wakeup() does not find it.  So a schedule that did not happen fails its test.
#pragma once

#include <atomic>
#include <cstdint>

#include "extension/engine/stop/stop_point.hpp"

namespace engine {

// How long a process stands at a point at most (stop.ends-by-itself): longer than a test waits for an answer.
inline constexpr uint32_t kStopMsMax = 60'000;

enum class StopState : uint32_t {
  kFree,
  kAttached,  // the arrival has not come
  kStands,    // a process stands at the point
  kWoken,     // it has been told to go on, and has not yet
  kLeft,      // it has gone on without being told (stop.left-is-told)
};
const char* stop_state_name(StopState) noexcept;

// An attachment.  `process` is the host's number of one; 0: any.
struct StopAttachment {
  StopPoint point = StopPoint::kCount;
  uint32_t process = 0;
  uint32_t arrival = 1;
};

struct StopSight {
  StopAttachment attachment;
  uint32_t arrivals = 0;  // so far, of those that it is for
  uint32_t stopped = 0;   // the process that stands there, or stood; 0: none yet
  StopState state = StopState::kFree;
};

// What a process does about standing still.  Its own thread calls it.
class StopStand {
 public:
  virtual ~StopStand() = default;
  virtual void begins(StopPoint) noexcept {}
  // Whether something else ends the stop: an interrupt, say.  Asked every few milliseconds.
  virtual bool ends() noexcept { return false; }
  // `woken`: by wakeup() or detach().
  virtual void ended(StopPoint, bool /* woken */) noexcept {}
};

class StopTable {
 public:
  static constexpr int kEntries = 32;

  // False: there is no room for one more.
  bool attach(const StopAttachment& attachment) noexcept;
  // The process that stands there goes on; the attachment is gone.  `process` 0: any.  False: none stands there.
  bool wakeup(StopPoint point, uint32_t process) noexcept;
  // The same for every attachment to the point that is for `process`, or 0: all; also those that nobody has come to.
  // Returns how many there were.
  int detach(StopPoint point, uint32_t process) noexcept;
  // Whether one stands there (0: any).
  bool stands(StopPoint point, uint32_t process) noexcept;
  // Returns how many there are.
  int list(StopSight (&to)[kEntries]) noexcept;

  // Whether arrivals at the point count.
  bool awaited(StopPoint point) const noexcept {
    return (awaited_.load(std::memory_order_relaxed) & uint64_t{1} << int(point)) != 0;
  }
  // One arrival of `process`; returns when it may go on.  `ms_max`: kStopMsMax, but for tests of this.
  void arrive(StopPoint point, uint32_t process, StopStand& stand, uint32_t ms_max = kStopMsMax) noexcept;

 private:
  struct Entry {
    StopAttachment attachment;
    uint32_t arrivals = 0;
    uint32_t stopped = 0;
    uint32_t age = 0;
    std::atomic<StopState> state{StopState::kFree};  // a futex word for the process that stands
  };
  static_assert(sizeof(std::atomic<StopState>) == 4);

  Entry* due(StopPoint point, uint32_t process) noexcept;
  void await_what_is_attached() noexcept;
  static bool wakes(Entry& entry) noexcept;

  std::atomic<uint64_t> awaited_{0};  // points with an attachment that nobody has come to
  std::atomic<uint32_t> lock_{0};
  uint32_t ages_ = 0;
  Entry entry_[kEntries];
};

}  // namespace engine
