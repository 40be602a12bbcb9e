// A process whose postmaster is dead.
//
// extension.orphans-end-server: Where deaths are repaired, a worker or a wait of ours that finds the postmaster
//     dead ends this server: it sends the other processes what the postmaster sends them after a crash (SIGQUIT),
//     and ends without any clean-up.  So the death is certain to the other primaries within moments, however long a
//     query would have gone on.  Elsewhere the first process that notices fences the pool.
#pragma once

namespace gcl {

// One load while the postmaster lives.  Does not return where it does not and deaths are repaired; fences the pool
// where they are not, and says so.
bool postmaster_gone() noexcept;

// From now on the signal that tells this process of its postmaster's death ends it, whatever it does: a query that
// looks at nothing for long, or a wait for a lock whose holder was killed, too, which PostgreSQL's own waits would go
// on with. Where deaths are repaired, and in a process of a server with a pool; else nothing.
void end_with_postmaster() noexcept;

// For a wait that looks again and again: sleeps so long.  Ends the statement at an interrupt, and the process where its
// postmaster is dead.
void pause_in_wait(long us);

}  // namespace gcl
