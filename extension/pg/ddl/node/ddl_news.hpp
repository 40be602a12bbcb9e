// News: how a process sleeps until another one, here or on another primary, has changed a word of the channel.
//
// ddl.change-wakes-waiters: Whoever changes a word rings the bells of the primaries where somebody may wait for it
//     (ddl_ring in ddl_port.hpp).
// ddl.launcher-passes-wakeups: Only the launcher sleeps on its primary's bell, and passes every ring on to the
//     condition variable that all others sleep on, but for apply workers: each sleeps on the bell of its slot, so that
//     a message wakes those that it is for and nobody else.  The signal handlers of both count on their bell, too: no
//     signal comes between their look and their sleep.
// ddl.look-before-sleep: Who waits prepares, looks, and only then sleeps: news between the look and the sleep ends the
//     sleep.
// ddl.heartbeat-ends-sleep: Every sleep ends after kHeartbeatMs at the latest: a fence and the death of a launcher ring
//     no bell.
#pragma once

#include <cstdint>

#include "extension/pg/boundary/wait_events.hpp"

namespace gcl {

inline constexpr long kHeartbeatMs = 250;

// --- everybody but the launcher -------------------------------------------------------------------------------------
void prepare_for_news();
// False: there was none for that long.  May raise: a cancel ends it.  kCount: nobody waits for what it waits for.
bool sleep_for_news(WaitEvent what, long ms = kHeartbeatMs);
bool sleep_for_news_uninterrupted() noexcept;
void done_with_news() noexcept;

// --- an apply worker between two messages ---------------------------------------------------------------------------
void watch_slot(int slot);
void count_on_slot() noexcept;  // called by the handlers of all signals that are not watch_slot()'s
uint32_t slot_bell_now() noexcept;
// Sleeps unless the bell has moved on from `seen`.
void sleep_on_slot(uint32_t seen, long ms) noexcept;

// --- the launcher -------------------------------------------------------------------------------------------------
void watch_bell();  // before signals are unblocked
// Both pass on what has been rung since the last time; the second sleeps before, unless the bell has moved on from
// `seen`.
uint32_t bell_now() noexcept;
void sleep_on_bell(uint32_t seen, uint32_t ms);
void tell_news() noexcept;

}  // namespace gcl
