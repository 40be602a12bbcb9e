// Answers: what a node tells the peers that asked: when the batch behind it is complete, or early
// (coherence.early-grant-bound).
#pragma once

#include "coherence/line/line.hpp"
#include "coherence/line/line_machine.hpp"
#include "coherence/session/session_context.hpp"

namespace coherence {

class Answers {
 public:
  explicit Answers(const SessionContext& session) : session_(session) {}

  // The replies of a step.
  void send(Line& line, const Actions& actions) noexcept;
  // The page is not here.
  void refuse(const PeerRequest& request) noexcept { reply(request, {.kind = ReplyKind::kDropped}); }

  // Answers that left before their batch was complete.
  struct Early {
    bool answered = false;
    uint8_t grants = 0;
    struct {
      uint8_t to, incarnation;
      uint32_t line;          // of the peer
    } grant[kParkedMax + 1];  // [0, grants) are set
  };
  // Answers the requests that the posted batch serves.
  void send_early(Line& line, Early* early) noexcept;
  // Their batch is complete: what was granted is no longer in flight.
  void complete(const Early& early) noexcept;

 private:
  uint32_t reply(const PeerRequest& request, const Reply&) noexcept;
  void grant_early(Line& line, const PeerRequest& request, ReplyKind kind, Early* early) noexcept;
  const SessionContext& session_;
};

}  // namespace coherence
