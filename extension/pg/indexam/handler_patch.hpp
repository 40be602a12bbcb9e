// btree's handler, replaced as builtin_patch.hpp says, after checking that it is the nbtree this code was
// written for.
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
