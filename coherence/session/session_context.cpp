#include "coherence/session/session_context.hpp"

#include <cstdio>

#include "coherence/pool/fence.hpp"

namespace coherence {

void SessionContext::cut_off() const noexcept {
  char reason[120];
  snprintf(reason, sizeof reason, "node %d lost a memory node in the middle of an operation", node.id.value);
  node.members->fence(reason);
}

}  // namespace coherence
