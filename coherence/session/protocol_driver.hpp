// ProtocolDriver: carries out what step() says for the lines of a node: batches, requests, replies, the latch's end.
#pragma once

#include <cstdint>

#include "coherence/line/line.hpp"
#include "coherence/line/line_machine.hpp"
#include "coherence/session/answers.hpp"
#include "coherence/session/latch_table.hpp"
#include "coherence/session/session_context.hpp"

namespace coherence {

// What the driver left behind, for MessageServer::after().
enum class Left : uint8_t {
  kNothing,
  kFree,      // the line: a parked request may be served
  kUnlocked,  // a latch of an abandoned operation was released
};

class ProtocolDriver {
 public:
  ProtocolDriver(SessionContext& session, LatchTable& latches, Answers& answers)
      : session_(session), latches_(latches), answers_(answers) {}

  // Begins the line's operation.  REQUIRES: the line's X latch; `slot` is free.
  Left start(Line& line, RequestSlot& slot, Event::Kind fetch) noexcept;
  // step(), and what the latch word and the slot show of it.  REQUIRES: the line's spinlock.
  Actions step_line(Line& line, const Event& event) noexcept;
  // Carries the actions out, to the operation's end or until replies are awaited.  `slot` is the operation's, read
  // under the spinlock: once the requests are out, another process may end the operation.
  Left run(Line& line, Actions actions, uint16_t slot) noexcept;

  enum class Replies : uint8_t { kNone, kTooEarly, kRefusals, kSome };
  struct Collected {
    Replies replies = Replies::kNone;
    Left left = Left::kNothing;
  };
  // Takes the replies that are in.  The line may be another operation's by now: then there is none for the caller.
  Collected collect(Line& line) noexcept;

  // coherence.log-first and coherence.early-grant-bound allow it.  In a fenced pool nothing that was changed leaves:
  // its redo may not be there (transport.unknown-cuts-off).  REQUIRES: a latch on the line.
  bool may_leave(const Line& line) const noexcept {
    if (session_.node.grant_in_flight(line)) return false;
    return fields(line).state.msi != MsiState::kModified || (logged(line) && !session_.node.fenced());
  }
  bool logged(const Line& line) const noexcept {
    return !session_.node.horizon || line.lsn() <= session_.node.horizon->flushed();
  }
  // After so many refusals an operation pauses between rounds: the asked node is stopped, or waits for a dead one.
  static constexpr uint32_t kRoundsWithoutPause = 16;

 private:
  friend struct SessionAccess;  // tests
  struct Posted {
    uint64_t old = 0;  // of the atomic
    Answers::Early early;
  };
  bool post(Line& line, const Actions& actions, Posted* posted) noexcept;
  void make_way(Line& line) noexcept;  // REQUIRES: the share is about to be dropped for LineState::serving
  NodeId ask_first(const Line& line) const noexcept;
  void fill_slot(Line& line, const Actions& actions) noexcept;
  void send(uint16_t slot, const Actions& actions) noexcept;
  bool refused(const Line& line, const RequestSlot& slot, bool* not_now) const noexcept;
  bool too_early(const Line& line, RequestSlot& slot, bool not_now) noexcept;
  enum class Presence : uint8_t { kThere, kGone, kBack };
  Presence presence(const Line& line, NodeId peer, ReplyWord asked) const noexcept;
  Left finish(Line& line, const Actions& actions) noexcept;
  RequestSlot& slot_of(const Line& line) const noexcept { return session_.node.slot(fields(line).op_slot); }

  SessionContext& session_;
  LatchTable& latches_;
  Answers& answers_;
};

}  // namespace coherence
