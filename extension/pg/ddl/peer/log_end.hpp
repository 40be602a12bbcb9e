// The end of the DDL log: this primary says how far it has applied it, and what all known primaries have is removed
// (ddl.log-has-end).
#pragma once

namespace gcl {

// Called for each round of the launcher, by it alone; does something once a second at most.
void tend_log();
// Nothing in the log is left to do here, also in databases that are not here.  REQUIRES: the whole cluster's DDL lock.
bool has_applied_all();
// For a session that is about to do DDL: ERROR if the log is as long as it may be, because a primary is away or behind.
// Waits a moment for those that are here.
void require_log_room();

}  // namespace gcl
