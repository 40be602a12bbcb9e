// How a primary becomes, and stays, a member (ddl.member-has-applied-log): it applies the log under the whole cluster's
// DDL lock, and takes over what others have locked.  Only the launcher calls these.
#pragma once

#include <cstdint>

namespace gcl {

// Returns when this primary is a member; may end the process.
void join();
// This primary takes no part; the reason has been noted (ddl.own-data-directory, ddl.log-has-end).
[[noreturn]] void stay_out();
// The pool is fenced, for good or because this primary is cut off, and its server about to end as in a crash.  A worker
// that ended by itself would not be started again with the others.
[[noreturn]] void stand_by_fenced();
// Gives the DDL lock of the whole cluster back, if this process has it.
void unlock_cluster();
// Called for each round of the launcher.  `waiting`: a message waits for an answer of this primary; its coordinator has
// the DDL lock.
void stay_up_to_date(bool waiting);
// Whether stay_up_to_date() has something left to do.
bool has_to_catch_up();

// Sleeping, as the launcher does: the wakeup event is looked at before whatever is waited for.
void sleep_from(uint32_t seen, long ms);
void sleep_ms(long ms);
// Ends the process if that is wanted, and no session is left that goes on using tables.
void stop_if_asked();
bool may_leave();

}  // namespace gcl
