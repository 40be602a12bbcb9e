// A transport with distance: a message is on its way for some time while its sender goes on, and messages of different
// pairs of session and node overtake each other; those of one pair stay in order, as those of a queue pair do.  Batches
// are those of seams.cpp.
#pragma once

#include <memory>

#include "coherence/member/shm_transport.hpp"

namespace sim {

class FarTransport final : public coherence::ShmTransport {
 public:
  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts&, coherence::Counters&) override;
  std::unique_ptr<coherence::Messenger> open_messenger(coherence::NodeParts&, coherence::Peers&,
                                                       coherence::Counters&) override;
};

}  // namespace sim
