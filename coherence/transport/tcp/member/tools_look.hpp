// What of memory a tool may do at any time (tcp.tools-look).
#pragma once

#include "coherence/transport/memory.hpp"

namespace coherence::tcp {

// Whether memory may be another one afterwards.  FETCH-ADD of nothing shows that atomics work, and leaves all as it
// was.
inline bool writes(const Op& op) noexcept {
  return op.verb != Verb::kRead && op.verb != Verb::kLoad && !(op.verb == Verb::kFaa && op.operand == 0);
}
inline bool writes(const Batch& batch) noexcept {
  for (int i = 0; i < batch.size(); i++)
    if (writes(batch.op(i))) return true;
  return false;
}

}  // namespace coherence::tcp
