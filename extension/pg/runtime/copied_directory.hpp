// Data directories that PostgreSQL's own tools have copied from a primary.
//
// runtime.copies-stay-out: A server joins no pool while its data directory is a standby's, in archive recovery, or
//     a base backup that has not been started: its WAL ends somewhere, and the other primaries' at other moments.
//     It does not start; without gcl.pool it does, with its ordinary tables.  A directory that was a copy at some
//     start without the pool is refused by the pool afterwards, too (ddl.own-data-directory).  Those that gclctl
//     restore has made say so in a file, until they have been in their pool.
//
// The files: standby.signal, recovery.signal, backup_label; gcl_ddl/restored.
#pragma once

namespace gcl {

// Before the server's recovery, in its data directory.
bool is_copied_directory();    // by another than gclctl restore
void require_own_directory();  // FATAL 55000 if it is one

}  // namespace gcl
