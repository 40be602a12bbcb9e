// What the processes of this server wait for, as records for all primaries: read from PostgreSQL's lock manager, as
// pg_blocking_pids() does, and from the processes' own slots (own_wait.hpp).
#pragma once

#include "extension/engine/txn/transaction.hpp"
#include "extension/engine/waitgraph/wait_record.hpp"
#include "extension/pg/boundary/pg.hpp"

namespace gcl {

// At most `room` records into `out`; returns how many.  If there are more, those that may be part of a cycle come
// first, and *left_out counts the rest.  Short locks only; never waits for another primary.
uint32_t collect_waits(engine::TxnSystem& txns, engine::WaitRecord* out, uint32_t room, uint32_t* left_out);

}  // namespace gcl
