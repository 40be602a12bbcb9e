// The node's background workers, by the names in their process titles: extension/README.md has what each does, and when
// it stops at a shutdown.  All but the flusher and the checkpointer attach a session of their own.
//
// workers.member-sleeps: The member worker publishes every 20 ms while the cluster's clock moves, and sleeps when the
//     clock has stood still for some rounds: until it is woken (txn.sleepers-are-woken), a wait is due
//     (pg_txn.waits-timed-from-start), or the next sample.  It reads its event's count before it looks at anything, and
//     the handlers of its signals count there, too: whatever comes between the look and the sleep ends the sleep.  The
//     message worker wakes it at a fence.
// workers.events-wake: The message worker and the provider sleep until they are called: by a message, an unlocked line,
//     a flushed log; by a session that takes frames.  Beside that the message worker looks for deaths four times a
//     second, and the provider for a fence as often.  What else a worker does for itself it does once a second.
// workers.deaths-end-waits: The message worker wakes the member worker when a primary has come, left or died.  The
//     member worker first ends what a dead one left (txn.waiters-of-dead-woken), then looks at its waits and at the
//     search for deadlocks: so those that waited for the dead one go on at once, and no answer of it is waited for.
//
// workers.helpers-end-later: A worker ends when none is left that may wait for what it does.  Others may wait
//     for a page of a primary that dies while this one stops: if repair had ended by then, and no other primary is
//     there, nobody would ever end that wait.  What a canceled session has asked for waits on when all have ended: so
//     the message worker itself records deaths while it leaves (node.leaver-records).
//
// An error ends a worker, and the postmaster starts it again; a crash restarts the server
// (extension.crash-restart-joins-again).
#pragma once

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

// What the member worker does for the views, in each of its rounds: stats/ has it, which workers/ does not know.
struct Sampling {
  void (*begin)();         // the node has joined the transaction system
  TimestampTz (*round)();  // never waits; returns when the next sample is due
  void (*end)();           // the node leaves it
};

void register_workers(const Sampling& sampling);  // from _PG_init

}  // namespace gcl
