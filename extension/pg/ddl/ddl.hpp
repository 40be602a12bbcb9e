// DDL on shared objects, done on every primary before its client hears of it.  What the module calls; what the layers
// below ask is in runtime/ddl_hooks.hpp, and the end of a transaction in txn/transaction_parts.hpp.
#pragma once

namespace gcl {

// From _PG_init, in the postmaster: hooks (chained), shared memory, the launcher.
void install_ddl_hooks();

}  // namespace gcl
