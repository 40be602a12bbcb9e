// FlightRing: the last protocol events of the sessions that had one session slot of a node, one after the other.
//
// One writer, the session that has the slot.  Readers, of other processes too, take no lock and keep nobody: they copy
// and drop what may have been overwritten meanwhile (read_flight()).
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ticks.hpp"
#include "coherence/trace/flight_event.hpp"

namespace coherence {

inline constexpr uint32_t kFlightEvents = 4096;

struct FlightRing {
  std::atomic<uint64_t> written;              // events, ever: the next one is at written % kFlightEvents
  std::atomic<uint64_t> began;                // `written` when the slot's last session began
  std::atomic<int32_t> pid;                   // its process
  std::atomic<uint32_t> ended;                // 1: it has ended
  std::atomic<uint64_t> then_ticks, then_ns;  // when it began (Moment)
  alignas(4096) FlightEvent event[kFlightEvents];

  void begin(int32_t process) noexcept {
    const Moment now = Moment::now();
    then_ticks.store(now.ticks, std::memory_order_relaxed);
    then_ns.store(now.ns, std::memory_order_relaxed);
    pid.store(process, std::memory_order_relaxed);
    ended.store(0, std::memory_order_relaxed);
    began.store(written.load(std::memory_order_relaxed), std::memory_order_release);
  }
  void end() noexcept { ended.store(1, std::memory_order_relaxed); }
  // The next event's place, and that it is filled.
  FlightEvent& next() noexcept { return event[written.load(std::memory_order_relaxed) % kFlightEvents]; }
  void noted() noexcept {
    written.store(written.load(std::memory_order_relaxed) + 1, std::memory_order_release);  // pairs with who reads
  }
  Moment then() const noexcept {
    return {then_ticks.load(std::memory_order_relaxed), then_ns.load(std::memory_order_relaxed)};
  }
};

// Of a ring that has had `written` events, while one more may be on its way: the first that is certainly whole.
inline uint64_t first_whole(uint64_t written) noexcept {
  return written < kFlightEvents ? 0 : written + 1 - kFlightEvents;
}

}  // namespace coherence
