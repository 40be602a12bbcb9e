// WorkerSignal: how a process of a node tells the node's network worker that it has left it something to do.
#pragma once

namespace coherence::tcp {

class WorkerSignal {
 public:
  // Behind what was left, which is published by a seq_cst operation.  Any process, and signal handlers.
  virtual void signal() noexcept = 0;

 protected:
  ~WorkerSignal() = default;
};

}  // namespace coherence::tcp
