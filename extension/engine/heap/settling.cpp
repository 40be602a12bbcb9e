#include "extension/engine/heap/settling.hpp"

namespace engine {

// S2.
Status Settling::wait(const Undecided& undecided) {
  if (!undecided.made || undecided == kept_) return txns_.waiter().wait_for(undecided.by, WaitFor::kUniqueKey);
  auto open = txns_.speculation(undecided.by, undecided.tid.packed());
  if (!open) return open.error();
  if (*open) return txns_.waiter().wait_until_settled(**open);
  kept_ = undecided;
  return {};
}

}  // namespace engine
