// A query starts: what other folders have to do then.
#pragma once

extern "C" {
#include "postgres.h"

#include "nodes/plannodes.h"
}

namespace gcl {

struct QueryStart {
  const PlannedStmt* plan;
  bool reads_sequences;  // names some, and is run, not explained
};

// From _PG_init.  `callback` is called by the leader, when the query's snapshot has its time.
void call_at_query_start(void (*callback)(const QueryStart& query));

}  // namespace gcl
