// DDL on shared objects, done on every primary before its client hears of it.  What the module calls.
//
// Order with the engine's transaction, in the module's transaction callback:
//   PRE_COMMIT   ddl_pre_commit();   then TxnSystem::prepare()
//   COMMIT       TxnSystem::commit();  then ddl_committed()
//   ABORT        TxnSystem::abort();   then ddl_aborted()
// Savepoints are followed by a callback of ddl/'s own.
#pragma once

namespace engine {
struct Sample;
}

namespace gcl {

// From _PG_init, in the postmaster: hooks (chained), shared memory, the launcher.
void install_ddl_hooks();

bool ddl_under_way() noexcept;  // this transaction has the cluster's DDL lock
void ddl_pre_commit();          // may raise
void ddl_committed() noexcept;  // waits until every primary has committed, or left, or the pool is fenced
void ddl_aborted() noexcept;    // does not wait

// Before a client's first touch of a gcl table, and of DDL: raises 55000 if this primary has not caught up.
void ddl_require_serving();
bool ddl_serving() noexcept;
const volatile bool* ddl_serving_flag() noexcept;  // the same of all databases, where it stands
// How this primary stands to the DDL of the others, for views.
void ddl_standing(engine::Sample* to);

// Whether this process is running another primary's statement: then nothing is made in, or freed from, the pool.
bool ddl_replaying();

}  // namespace gcl
