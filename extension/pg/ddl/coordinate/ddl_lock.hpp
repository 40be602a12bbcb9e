// The DDL lock of a database, and that of the whole cluster (engine/ddl, DdlLocks), with a lock tag in front of each,
// so that a wait for it is a wait for a lock of this server (ddl.lock-waits-by-tag): every process that wants the DDL
// lock takes the tags first, and the apply worker has them while another primary's session is the coordinator.
#pragma once

#include "extension/engine/ddl/ddl_words.hpp"
#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

using engine::DdlRight;

engine::DdlHolder ddl_me();
int ddl_lock_of_database();  // this session's

// `lock`: of kDatabase; of no interest for kWhole.  Held until they are given back: no end of a savepoint does it.
void lock_ddl_tags(DdlRight right, int lock);
void unlock_ddl_tags(DdlRight right, int lock);

// Takes the lock, with its tags.  May wait: cancelable, obeys lock_timeout, and is an edge of the deadlock checks, the
// local one and that of the cluster.
void take_ddl_lock(DdlRight right, int lock);
// Never raises.
void give_back_ddl_lock(DdlRight right, int lock);

// How long a process that waits since `began` may sleep: lock_timeout is counted from there.  Raises when it is over.
long ms_of_lock_timeout(int64_t began, const char* awaited);
[[noreturn]] void raise_fenced();

}  // namespace gcl
