#include "extension/engine/heap/decision_wait.hpp"

namespace engine {

// heap.ask-speculation-first.
Status DecisionWait::wait(const Undecided& undecided) {
  if (!undecided.made || undecided == kept_) return txns_.waiter().wait_for(undecided.by, WaitFor::kUniqueKey);
  auto open = txns_.speculation(undecided.by, undecided.tid.packed());
  if (!open) return open.error();
  if (*open) return txns_.waiter().wait_for_speculation(**open);
  kept_ = undecided;
  return {};
}

}  // namespace engine
