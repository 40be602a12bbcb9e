// Sessions of this primary that have a DDL lock, and let others wait for nothing.
//
// ddl.idle-holder-ended: A session with a DDL lock that others wait for is ended when it has been idle in its
//     transaction for gcl.ddl_yield: it may be forgotten, or its owner may want to hold up all others; so PostgreSQL's
//     own idle_in_transaction_session_timeout, which any user may reset, is not enough.  The whole cluster's lock,
//     which any role gets by ALTER ROLE on itself, is held no longer than that by one that may not make roles or
//     databases, whatever it does but DDL.  Those that wait say so, or their launcher does; the holder's launcher takes
//     what was said, and ends the session when it was said anew.
#pragma once

namespace gcl {

// Between two waits of the launcher.  Costs no round trip as long as no session here has a DDL lock, or waits for one.
void tend_ddl_locks();

}  // namespace gcl
