// ProtocolDriver: carries out what step() says for the lines of a node: batches, requests, replies, the latch's end.
//
// A batch that is complete when it has been posted, as every one of `shm` is, is gone on with at once.  Any other is
// under way when the call returns: complete() goes on with it (coherence.event-ends-batch).
#pragma once

#include <cstdint>
#include <memory>

#include "coherence/line/line.hpp"
#include "coherence/line/line_machine.hpp"
#include "coherence/session/answers.hpp"
#include "coherence/session/latch_table.hpp"
#include "coherence/session/session_context.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/under_way.hpp"

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
      : session_(session), latches_(latches), answers_(answers), under_way_(std::make_unique<Transitions>()) {}

  // Begins the line's operation.  REQUIRES: the line's X latch; `slot` is free; has_room().
  Left start(Line& line, RequestSlot& slot, Event::Kind fetch) noexcept;
  // step(), and what the latch word and the slot show of it.  REQUIRES: the line's spinlock.
  Actions step_line(Line& line, const Event& event) noexcept;
  // Carries the actions out, to the operation's end or until replies are awaited or a batch is under way.  `slot` is
  // the operation's, read under the spinlock: once the requests are out, another process may end the operation.
  // REQUIRES: has_room(), if they post.
  Left run(Line& line, Actions actions, uint16_t slot) noexcept;

  enum class Replies : uint8_t { kNone, kTooEarly, kRefusals, kSome };
  struct Collected {
    Replies replies = Replies::kNone;
    Left left = Left::kNothing;
  };
  // Takes the replies that are in, unless there is no room for what comes next.  The line may be another operation's by
  // now: then there is none for the caller.
  Collected collect(Line& line) noexcept;

  // --- batches under way ---------------------------------------------------------------------------------------------
  // So many of a session: with 13 operations each, at most, they fit into a connection's queue of 256.
  static constexpr int kUnderWayMax = 16;
  // A batch more can be posted (coherence.room-before-latch).
  bool has_room() const noexcept { return under_way_->room(); }
  bool under_way() const noexcept { return under_way_->any(); }
  // Calls end(place) for each whose batch is complete; end() calls complete().
  template <class End>
  bool reap(End end) noexcept {
    return under_way_->reap(end);
  }
  Line& line_at(int place) const noexcept { return *(*under_way_)[place].line; }
  // The batch is complete: makes the event, and goes on.
  Left complete(int place) noexcept;

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
  // A batch, and what goes on when it is complete.
  struct Transition {
    explicit Transition(Line& of) : batch(of.page().node()), line(&of) {}
    Batch batch;
    Line* line;
    Post what = Post::kNone;
    int atomic = -1;
    uint64_t began = 0;
    Answers::Early early;
  };
  using Transitions = UnderWay<Transition, kUnderWayMax>;

  Left go_on(Line& line, Actions& actions, int place) noexcept;
  bool post(Line& line, const Actions& actions, Transition& transition) noexcept;
  bool take_event(Transition& transition, Actions* actions, uint16_t* slot) noexcept;
  Left carry_out(Line& line, const Actions& actions, uint16_t slot) noexcept;
  bool repair(Line& line) noexcept;
  void make_way(Line& line) noexcept;  // REQUIRES: the share is about to be dropped for LineState::serving
  NodeId ask_first(const Line& line) const noexcept;
  void fill_slot(Line& line, const Actions& actions) noexcept;
  void send(uint16_t slot, const Actions& actions) noexcept;
  bool refused(const Line& line, const RequestSlot& slot, bool* not_now) const noexcept;
  bool too_early(const Line& line, RequestSlot& slot, bool not_now) noexcept;
  enum class Presence : uint8_t { kThere, kGone, kBack };
  Presence presence(NodeId peer, ReplyWord asked) const noexcept;
  Left finish(Line& line, const Actions& actions) noexcept;
  RequestSlot& slot_of(const Line& line) const noexcept { return session_.node.slot(fields(line).op_slot); }

  SessionContext& session_;
  LatchTable& latches_;
  Answers& answers_;
  const std::unique_ptr<Transitions> under_way_;
};

}  // namespace coherence
