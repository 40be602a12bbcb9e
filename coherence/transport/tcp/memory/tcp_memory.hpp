// TcpMemory: a session's way to memory nodes over a network: batches go through the Port, and the network worker sends
// them.
//
// post() copies; it never waits.  What the session's place in the port has no room for stays here until there is some
// (transport.poll-until-done: callers poll).
#pragma once

#include <cstdint>
#include <vector>

#include "coherence/stats/counters.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/tcp/memory/port.hpp"

namespace coherence::tcp {

class TcpMemory final : public Memory {
 public:
  // Both outlive it.  `counters` belong to the one session that uses it.  REQUIRES: the port has a place.
  TcpMemory(Port& port, Counters& counters);
  ~TcpMemory() override;  // waits for what is under way
  using Memory::post;
  // REQUIRES: each batch can travel (batch_frame.hpp).
  void post(Batch* const* batches, int count) override;
  void poll() override;

 private:
  bool put(Batch& batch) noexcept;
  bool put_bytes(PortEntry& entry) noexcept;
  void put_waiting() noexcept;
  void take(int entry) noexcept;
  void count(const Batch& batch) noexcept;
  void sleep() noexcept;
  void look_for_worker() noexcept;

  Port& port_;
  Counters& counters_;
  PortPlace& place_;
  uint32_t under_way_ = 0;       // a bit for each entry
  uint32_t with_bytes_ = 0;      // those that have bytes in the place
  uint32_t sleeps_ = 0;          // since the worker was looked for
  uint32_t bytes_used_ = 0;      // from the front, since none had
  Batch* batch_[kEntriesEach];   // of those under way
  std::vector<Batch*> waiting_;  // for room, the oldest first
};

}  // namespace coherence::tcp
