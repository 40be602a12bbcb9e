// LOCK TABLE on one primary is a lock on all, if its mode conflicts with what statements elsewhere do.  It is taken on
// the first primary first (ddl.locked-everywhere-first), wherever that is; the coordinator's own is taken by
// PostgreSQL's statement, between these two.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

struct SharedLock {
  const LockStmt* statement;
  List* asked;       // DdlTarget*: what the first primary has locked for it
  bool starts_here;  // this is the first primary
};

// May wait: cancelable, obeys lock_timeout.
SharedLock begin_shared_lock(const LockStmt* statement);
void end_shared_lock(const SharedLock& lock);

}  // namespace gcl
