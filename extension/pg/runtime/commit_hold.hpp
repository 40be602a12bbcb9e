// A short hold of this primary's commits, for a cut through the logs of all primaries (recovery/design.md, "Backups").
// A session holds them, on every primary at once; what each has in its log up to the position that hold_commits()
// returned is the cut.
//
//   committer  enter -> [commit record; published in gcl tables] -> leave
//   holder     hold -> wait until all have left -> nothing that is logged from here on leaves -> position; ...; release
//
// hold.commits-are-whole: Every transaction with an xid enters before its commit record, and leaves when it has ended:
//     published in gcl tables, and out of the server's list.  While commits are held none enters, and all that were
//     inside have left before the position.  So a commit record before the position is of a transaction that all may
//     have seen, and behind it there is none of one that anybody has seen before the release.  Transactions that are
//     PREPAREd by the user are excepted: with max_prepared_transactions > 0 nothing is held.
// hold.pages-stay: From the position to the release no page leaves the node that was changed behind the position: for
//     coherence, the log is flushed up to there and no further (held_back(); log.redo-before-page).  So no other
//     primary sees a change of a page that is behind the position.
// hold.ends-in-time: A hold ends by its release, at its deadline, or with its session.  It is over at the deadline for
//     any process that looks, before anybody has ended it.  A release behind the deadline says so, and the cut is void.
// hold.committers-can-be-cancelled: A transaction that waits to enter has no commit record yet: a cancel rolls it back.
//
// A commit costs a store in a line of its own, and a load of a line that changes with holds only.
#pragma once

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

size_t commit_hold_bytes(uint32_t slots);
void commit_hold_init(void* memory, uint32_t slots);  // before the first process is forked

// --- the transaction itself ------------------------------------------------------------------------------------------
void enter_commit();           // REQUIRES: it has an xid, and has not entered; raises while it waits
void leave_commit() noexcept;  // at every end; nothing to do if it has not entered

// --- the holder ------------------------------------------------------------------------------------------------------
// Holds this server's commits for at most `ms` from now on, for this session.  Returns the position up to which the
// log has all that anybody has seen; it is flushed.  55006: another session holds them; 55P03: a commit that was under
// way has not ended in time; 55000: this server is not in the pool, or has transactions that are PREPAREd.
XLogRecPtr hold_commits(int ms);
// Ends this session's hold.  False: it was over before, or there was none.
bool release_commits();

// --- the log, as coherence sees it -----------------------------------------------------------------------------------
// What of a log that is flushed up to `flushed` counts as that.  REQUIRES: `flushed` was read before.
XLogRecPtr held_back(XLogRecPtr flushed) noexcept;
// For the flusher: ends a hold that is over.  Milliseconds until the next one is; -1: none is held.
long end_hold_in_time() noexcept;

}  // namespace gcl
