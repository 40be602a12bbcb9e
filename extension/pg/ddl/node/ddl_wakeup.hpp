// Wakeups: how a process sleeps until another one, here or on another primary, has changed a word of the channel.
//
// ddl.change-wakes-waiters: A process that changes a word wakes the primaries where a process may wait for it
//     (ddl_wake_node() in ddl_port.hpp).
// ddl.launcher-passes-wakeups: Only the launcher sleeps on its primary's wakeup event, and passes every wakeup on to
//     the condition variable that all others sleep on, but for apply workers: each sleeps on the wakeup event of its
//     slot, so that a message wakes only the workers that it is for.  The signal handlers of both count on their event,
//     too: no signal comes between look and sleep.
// ddl.look-before-sleep: A process that waits prepares, looks, and only then sleeps: a wakeup between the look and the
//     sleep ends the sleep.
// ddl.heartbeat-ends-sleep: Every sleep ends after kHeartbeatMs at the latest: a fence and the death of a launcher wake
//     no process.
#pragma once

#include <cstdint>

#include "extension/pg/boundary/wait_events.hpp"

namespace gcl {

inline constexpr long kHeartbeatMs = 250;

// --- all but the launcher -------------------------------------------------------------------------------------------
void prepare_for_wakeup();
// False: no wakeup came for that long.  May raise: a cancel ends it. kCount: views show Extension.
bool sleep_until_wakeup(WaitEvent what, long ms = kHeartbeatMs);
bool sleep_until_wakeup_uninterrupted() noexcept;
void done_with_wakeups() noexcept;

// --- an apply worker between two messages ---------------------------------------------------------------------------
void watch_slot(int slot);
void count_on_slot() noexcept;  // called by the handlers of all signals that are not watch_slot()'s
uint32_t slot_wakeup_count() noexcept;
// Sleeps unless the event has moved on from `seen`.
void sleep_on_slot(uint32_t seen, long ms) noexcept;

// --- the launcher -------------------------------------------------------------------------------------------------
void watch_wakeups();  // before signals are unblocked
// Both pass on the wakeups since the last time; the second sleeps before, unless the event has moved on from `seen`.
uint32_t wakeup_count() noexcept;
void sleep_on_wakeup_event(uint32_t seen, uint32_t ms);
void wake_waiters() noexcept;

}  // namespace gcl
