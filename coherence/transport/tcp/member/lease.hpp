// Lease: since when memory node 0 is known to know that this node is there (tcp.lease).
//
// tcp.lease-from-question: The node asks, a few times in a lease, and the lease counts from when it asked what memory
//     node 0 has acknowledged since.  Bytes that lay in the network for however long make it no longer: memory node 0
//     has heard the question after it was asked, so its patience began later than the lease.
//
// One thread, the network worker's.
#pragma once

#include <cstdint>

#include "coherence/transport/net/link.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"

namespace coherence::tcp {

class Lease {
 public:
  static constexpr uint64_t kAgainNs = 200'000'000;

  // Asks when it is time to.
  void ask(net::Link& to, uint64_t now_ns) noexcept {
    if (asked_ != 0 && now_ns < asked_at_ + kAgainNs) return;
    if (asked_ != 0 && !to.acknowledged(asked_)) return;  // the next one when this one is answered
    if (!to.send(kLeaseFrame, net::Link::Piece{})) return;
    asked_ = to.last_queued();
    asked_at_ = now_ns;
  }
  // When the last question was asked that was answered; 0: none was.
  uint64_t begins(const net::Link& to) noexcept {
    if (asked_ != 0 && to.acknowledged(asked_)) answered_at_ = asked_at_;
    return answered_at_;
  }

 private:
  uint64_t asked_ = 0, asked_at_ = 0;  // the frame's number
  uint64_t answered_at_ = 0;
};

}  // namespace coherence::tcp
