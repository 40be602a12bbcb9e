// Whether a primary's data directory is the one that it left the pool with (P31).
//
// Every start of the server is a life with a number of its own, and its clean end is another one; both stand in the
// pool, in a word of the channel, and in a file beside the data.  A copy of the data directory that is older
// than the last stop, of another primary, or of another pool, has another number: what the primary has itself
// committed meanwhile would be missing there for good (P6), and its OIDs would be given again.
//
//   <data>/gcl_ddl/life:  node, number before, number now
#pragma once

namespace gcl {

// False: this is another data directory; why is noted (refusal in ddl_node_state.hpp).  Called once in a life of the
// server, by the launcher.
bool begin_life();
// The launcher ends in order; nothing of DDL follows.
void end_life();

}  // namespace gcl
