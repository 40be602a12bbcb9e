// Messenger: what nodes say to each other.  The seam behind which shm, sim, tcp and verbs fit, beside Memory,
// Membership and Wakeup.
//
// A request names a slot of its requester; the slot's reply word is where the reply comes, and the line that the slot
// names is where a granted page lands.  Only a Messenger writes another node's memory.
//
// One for each session, used by its thread; opened after fork.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/line/line_state.hpp"

namespace coherence {

// Gets what peers ask.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // `from` asks with that slot of its own; take_request() says what, and whether it still does.
  virtual void receive(NodeId from, uint16_t slot) noexcept = 0;
};

// What a reply tells beside its kind.
struct Reply {
  ReplyKind kind = ReplyKind::kNone;
  const std::byte* page = nullptr;  // of what carries_page(): 8 KB
  uint64_t more = 0;                // ReplyWord::of()
  bool in_flight = false;           // a grant whose batch is not complete (coherence.early-grant-bound)
};

class Messenger {
 public:
  virtual ~Messenger() = default;
  // Gets ready for messages with the nodes that have joined, and forgets those that have left; false: there is no
  // memory or no descriptor for that (coherence.peers-reached-first).  One load while no node comes or goes.
  virtual bool reach_all() noexcept = 0;

  // --- the requester's side ------------------------------------------------------------------------------------------
  // Sends what a slot of this node asks about the page (the slot itself may be another operation's after the first
  // reply).  A node that is not in the pool any more gets nothing: the session that waits finds it gone.
  virtual void ask(NodeId to, uint16_t slot, PageId page) noexcept = 0;

  // --- the side that is asked ----------------------------------------------------------------------------------------
  // Calls the handler for what has arrived; whether anything had.
  virtual bool receive(RequestHandler&) noexcept = 0;
  // Takes what the slot asks of this node; from then on it stays as it is until the reply.  False: nothing (any more),
  // or another process of this node has it (coherence.request-taken-once).
  virtual bool take_request(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) noexcept = 0;
  // One for each request that was taken.  The page is copied before it returns.  Returns where a grant landed: the
  // requester's line; kNowhere: the requester is not in the pool any more.
  static constexpr uint32_t kNowhere = ~uint32_t{0};
  virtual uint32_t reply(const PeerRequest& request, const Reply&) noexcept = 0;
  // The batch behind a grant in flight is complete.
  virtual void grant_complete(NodeId to, uint8_t incarnation, uint32_t line) noexcept = 0;
  // Returns when all that was sent has arrived, or never will: a node that has left sends nothing any more.
  virtual void flush() noexcept {}
  // Its session ends: what was sent arrives nevertheless.
  virtual void end() noexcept { flush(); }
};

}  // namespace coherence
