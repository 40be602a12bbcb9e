// The transaction's life, told to the engine: PRE_COMMIT prepares, the local commit record decides, COMMIT publishes,
// ABORT is one status write.  PREPARE TRANSACTION is refused for transactions that changed gcl tables
// or did DDL on shared objects.
#pragma once

namespace gcl {

void install_transaction_callbacks();  // from _PG_init

}  // namespace gcl
