// meet(): a node that comes, and one that is there, reach each other through their own mappings.
//
// A process has the mappings of its peers to itself, and their lock (Peers) dies with it.  Here the processes of a node
// have them together: what one of them held when it died is held for good.  So a node that comes does not meet a node
// of which a process has died, and no node dies while two meet (sim.no-death-in-calm).  What is left of such a node
// maps the other's file, where it wakes no process, until it is dead, too.
#pragma once

#include "coherence/member/node_parts.hpp"
#include "coherence/transport/shm/peers.hpp"
#include "coherence/transport/shm/shm_wakeup.hpp"
#include "scheduler.hpp"

namespace sim {

// REQUIRES: it is calm, or nothing runs.
inline void meet(const coherence::NodeParts& comes, const coherence::NodeParts& there) {
  if (scheduler()->dying(there.id.value)) return;
  coherence::peers_of(there).share(comes.id, *comes.arena);
  coherence::peers_of(comes).share(there.id, *there.arena);
}

}  // namespace sim
