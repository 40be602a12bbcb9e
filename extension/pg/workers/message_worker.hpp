// The message worker: answers other nodes, tells this node's workers of members, and leaves the pool at the end.
#pragma once

namespace gcl {

void message_worker();

}  // namespace gcl
