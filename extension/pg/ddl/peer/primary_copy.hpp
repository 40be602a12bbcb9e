// A primary made from the data directory of another one, and one that is not to come back (ddl.log-has-end).
#pragma once

#include <cstdint>

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// From here to the end of the transaction there is no DDL: a copy of the data directory that is made meanwhile, as
// pg_basebackup makes it, may be started as primary `node`, if the transaction commits.  Returns the first OID that it
// gives.  ERROR outside a transaction block, and if `node` takes part.
Oid prepare_copy(int node);
// ERROR if there can be no such primary, or it is this one.
void require_other_primary(int node);
// The DDL log does not wait for that primary any more, and its data directory is refused.  ERROR if it takes part, or
// has died and is not repaired yet, or if it alone can tell what became of some transaction of it.
void forget_primary(int node);

}  // namespace gcl
