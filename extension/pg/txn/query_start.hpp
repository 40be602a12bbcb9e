// A query starts: what other folders have to do then.
#pragma once

extern "C" {
#include "postgres.h"

#include "nodes/plannodes.h"
}

namespace gcl {

// From _PG_init.  `callback` is called by the leader, when the query's snapshot has its time; `flags`: EXEC_FLAG_*.
void call_at_query_start(void (*callback)(const PlannedStmt* plan, int flags));

}  // namespace gcl
