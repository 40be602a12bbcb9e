// The one change made to the server's image: the pointer of the built-in function `bthandler` in fmgr_builtins[].
//
// P1. Changed only in the process that preloads libraries, before it forks; children inherit it.
// P2. Changed only if everything known about the entry and the server holds; otherwise FATAL, and nothing is changed.
// P3. One aligned pointer is stored; its page is read-only before and after.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/amapi.h"
#include "fmgr.h"
}

namespace gcl {

// What the server's own handler returns, after checking that it is the nbtree this code was written for.  FATAL if not.
IndexAmRoutine checked_native_routine();

// Makes `replacement` the handler of every btree index and checks that the server now calls it.  FATAL on any failure.
// REQUIRES: called while shared_preload_libraries are processed.
void replace_btree_handler(PGFunction replacement);

}  // namespace gcl
