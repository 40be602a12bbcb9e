// An administrator decides what only a primary that is away could decide, and it is not to come back
// (txn.doubt-decided-once).
#pragma once

#include <cstdint>

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// ERROR if that is not in doubt, or was decided otherwise before.  Where it is DDL, the primary's data directory is
// refused from then on (ddl.doubt-decided-without-it).
void resolve_in_doubt(int node, uint64_t sequence, bool commit);

}  // namespace gcl
