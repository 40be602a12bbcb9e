// Requester: a session that wants a page: enters the line, or begins its operation and waits for the end.
#pragma once

#include <cstdint>

#include "coherence/base/result.hpp"
#include "coherence/line/line.hpp"
#include "coherence/session/latch_table.hpp"
#include "coherence/session/message_server.hpp"
#include "coherence/session/protocol_driver.hpp"
#include "coherence/session/session_context.hpp"
#include "coherence/session/waiting.hpp"

namespace coherence {

// What a page is read for.  A session that is about to write it, and has to fetch it anyway, becomes its owner
// (protocol.md, Intent).
enum class Intent : uint8_t { kRead, kWrite };

// What begin_read() got.
enum class ReadAccess : uint8_t {
  kShared,  // the page, latched shared
  kCopied,  // a copy, latched exclusively
};

// The transaction that holds a page.
struct Holder {
  NodeId node;
  uint64_t by = 0;  // in its node's words; 0: not known
};

class Requester {
 public:
  enum class Want : uint8_t { kShared, kExclusive, kRead };

  Requester(SessionContext& session, const Waiting& waiting, LatchTable& latches, ProtocolDriver& driver,
            MessageServer& server)
      : session_(session),
        waiting_(waiting),
        latches_(latches),
        driver_(driver),
        server_(server),
        inbox_(session.node.arena->inbox_peers) {}

  // As Session::lock_shared(), lock_exclusive(), begin_read().
  Status lock(Line& line, PageId page, Want want, Intent intent, ReadAccess* how = nullptr);
  // As Session::try_lock...
  Status try_lock(Line& line, PageId page, bool exclusive);
  void unlock(Line& line, bool exclusive) noexcept {
    const LocalWord after = exclusive ? LatchTable::release_exclusive(line) : LatchTable::release_shared(line);
    if (LatchTable::is_wanted(after)) server_.unlocked_now(line, after);
    if (inbox_.load(std::memory_order_relaxed) != 0) server_.help_now();
  }
  Holder holder() const noexcept { return holder_; }

 private:
  Status enter(Line& line, PageId page, Want want, Intent intent, ReadAccess* how);
  enum class Fetched : uint8_t { kDone, kAgain };
  Result<Fetched> fetch(Line& line, PageId page, Want want, Intent* intent, ReadAccess* how);
  Status wait_local(Line& line, bool exclusive);
  Status stand_back(Line& line);
  Status await_grant(Line& line);
  Status await(Line& line, RequestSlot& slot, Outcome* outcome);
  bool abandon(RequestSlot& slot) noexcept;
  void wait_to_resend(const RequestSlot& slot) noexcept;
  RequestSlot* take_slot() noexcept;
  void help_if_asked() noexcept {
    if (session_.peers_asked()) server_.help();
  }

  SessionContext& session_;
  const Waiting& waiting_;
  LatchTable& latches_;
  ProtocolDriver& driver_;
  MessageServer& server_;
  const std::atomic<uint64_t>& inbox_;  // SessionContext::peers_asked(), one step nearer
  Holder holder_;
};

}  // namespace coherence
