// Whether this server is about to stop.
//
// runtime.workers-end-with-server: A worker that is told to end (SIGTERM) ends only if the whole server stops.
//     pg_terminate_backend() tells it the same, perhaps of all processes at once: a server whose workers had ended by
//     that, which the postmaster does not start again, would serve no gcl table any more.  The DDL launcher ends, when
//     no session needs it, and is started again (ddl.member-has-applied-log).
#pragma once

namespace gcl {

// REQUIRES: SIGTERM is handled by SignalHandlerForShutdownRequest().  A load and a test until it comes.
bool server_stops();

}  // namespace gcl
