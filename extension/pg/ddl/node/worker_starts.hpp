// The launcher's apply workers: which run, and starting one.  Only the launcher calls these.
#pragma once

#include <cstdint>

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// `index` is the worker's in DdlNodeState.
bool runs(int index);
// The one that serves the slot; -1: none.
int worker_of(int slot);
// `slot` < 0: it only catches up with the log, until that entry (0: all of it).  -1: no room for another background
// worker.
int start_worker(const char* database, int slot, uint64_t until = 0);
// A former launcher ended: those of its workers that are not up yet are not to come.
void disown_former_workers();

}  // namespace gcl
