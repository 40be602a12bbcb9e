// Calls: how a process that joins or leaves calls memory node 0.  A Tool's link is one; the simulator has another.
#pragma once

#include <cstdint>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"

namespace coherence::tcp {

class Calls {
 public:
  // Waits for the answer.  kUnreached: there is none, and the call may have been carried out; kInterrupted.
  virtual Status call(const CallFrame& call, uint64_t* value, Problem* problem) = 0;
  // As of the last call's answer (tcp.answer-behind-table); null: none came, or there is no link.
  virtual const Table* table() const noexcept = 0;
  // A change that this link has begun ends with it (tcp.change-of-one-tool).
  virtual void close() noexcept = 0;

 protected:
  ~Calls() = default;
};

}  // namespace coherence::tcp
