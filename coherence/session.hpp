// Session: the coherence of one process (or test thread): latch lines, evict them, serve peers.  A facade: what it does
// is done by its roles, in session/.
//
// C1. A Session is used by one thread; made after fork; SessionId unique in the node while it lives.
// C2. Locks wait as long as it takes, bounded by the fence (kFenced) and by Interrupts (kInterrupted: nothing changed).
// C3. kRestart: the line is another page's by now; look the page up again.
// C4. No session latches the same line twice, shared or not: a waiting writer keeps new readers out.
// C5. The operation a lock starts belongs to the line: a caller who leaves does not end it; serve() does.
//
// A miss, as bufmgr does it:
//   Line& line = a frame from the free list;        // state I, page none
//   GCL_TRY(session.assign(line, page));            // then publish it in the frame table
//   GCL_TRY(session.lock_shared(line, page));       // fetches the page
// Giving a frame back:
//   if (session.try_evict(line, page)) { unpublish; session.finish_evict(line); }
#pragma once

#include <cstdint>
#include <memory>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/line/line.hpp"
#include "coherence/member/flight_recorder.hpp"
#include "coherence/member/node.hpp"
#include "coherence/session/answers.hpp"
#include "coherence/session/evictor.hpp"
#include "coherence/session/latch_table.hpp"
#include "coherence/session/message_server.hpp"
#include "coherence/session/protocol_driver.hpp"
#include "coherence/session/requester.hpp"
#include "coherence/session/session_context.hpp"
#include "coherence/session/waiting.hpp"

namespace coherence {

class Session {
 public:
  Session(Node& node, SessionId id, Interrupts* interrupts);  // interrupts may be null
  ~Session();                                                 // REQUIRES: no latch held; the node still there
  Session(const Session&) = delete;

  // --- latches -------------------------------------------------------------------------------------------------------
  // kHeld: a peer's transaction holds the page.  kNoMemory: this process has no room to map a peer's arena (I18).
  // Neither from try_.
  Status lock_shared(Line& line, PageId page, Intent intent = Intent::kRead) {
    if (!LatchTable::hit_shared(line)) return requester_.lock(line, page, Requester::Want::kShared, intent);
    return line.page() == page ? Status() : wrong_page(line, false);
  }
  Status lock_exclusive(Line& line, PageId page) {
    if (!LatchTable::hit_exclusive(line))
      return requester_.lock(line, page, Requester::Want::kExclusive, Intent::kWrite);
    return line.page() == page ? Status() : wrong_page(line, true);
  }
  // kWouldBlock unless it is a hit (or gamma allows one more local turn).
  Status try_lock_shared(Line& line, PageId page) {
    if (!LatchTable::hit_shared(line)) return requester_.try_lock(line, page, false);
    return line.page() == page ? Status() : wrong_page(line, false);
  }
  Status try_lock_exclusive(Line& line, PageId page) {
    if (!LatchTable::hit_exclusive(line)) return requester_.try_lock(line, page, true);
    return line.page() == page ? Status() : wrong_page(line, true);
  }
  void unlock_shared(Line& line) noexcept { requester_.unlock(line, false); }
  void unlock_exclusive(Line& line) noexcept { requester_.unlock(line, true); }
  // X becomes S without letting anybody in between.
  void downgrade(Line& line) noexcept { latches_.end_latch(line, LatchEnd::kToShared, line.msi()); }
  // The optimistic copy made since `token` is still good, and now the latch is held exclusively; kRestart if the page
  // changed, kWouldBlock if it is not a hit (release everything, lock_exclusive, look again).
  Status try_upgrade(Line& line, PageId page, uint64_t token) { return LatchTable::try_upgrade(line, page, token); }

  // Transaction-long holds (I16): the node keeps at least S (or M) until dropped; a latch need not be held meanwhile.
  // Peers who ask for what the hold forbids get kHeld, and `by`: the transaction in its node's words, below
  // 2^kHolderBits, or 0.  Of several holds the newest's is told, or 0 once that is dropped.
  // REQUIRES: hold(): the latch is held in that mode now.
  void hold(Line& line, bool exclusive, uint64_t by = 0);
  void drop_hold(Line& line, bool exclusive, uint64_t by = 0);
  // Whose transaction it was, after kHeld: wait for its end, then ask again.  It may be over by now.
  Holder holder() const noexcept { return requester_.holder(); }

  // For who needs to see a page once, and waits for no transaction: as lock_shared(), but what a peer's transaction
  // holds exclusively is copied into the frame as it is at some moment of this call.  A copy is not cached: the node
  // owns nothing afterwards, and no other process sees it.  Ends with end_look(); short, as a latch is.
  Status look(Line& line, PageId page, Look* how) {
    return requester_.lock(line, page, Requester::Want::kLook, Intent::kRead, how);
  }
  void end_look(Line& line, Look how) noexcept { requester_.unlock(line, how == Look::kCopied); }

  // --- frames --------------------------------------------------------------------------------------------------------
  // Gives an unused line its page.  REQUIRES: page() is none; the caller alone may publish it.  In steps, as who
  // publishes it does so under a lock: begin_assign() latches the line, for which it waits where a late comer has it
  // (kFenced, kInterrupted: it is as it was); name() waits for nothing, and may be left out; end_assign() unlatches it.
  Status begin_assign(Line& line) { return evictor_.begin_assign(line); }
  void name(Line& line, PageId page) noexcept { evictor_.name(line, page); }
  void end_assign(Line& line) noexcept { evictor_.end_assign(line); }
  Status assign(Line& line, PageId page) {
    GCL_TRY(begin_assign(line));
    name(line, page);
    end_assign(line);
    return {};
  }
  // Gives up the node's ownership of `line`; on success the line is latched for finish_evict() and nobody can fetch it
  // anew.  kWouldBlock: latched, held, being fetched, asked for by a peer, or changed beyond the log horizon.
  // One round trip; of many at once: EvictionWindow.
  Status try_evict(Line& line, PageId page);
  // After unpublishing: the line is free (page none), late comers get kRestart.
  void finish_evict(Line& line) { evictor_.finish_evict(line); }
  // Sends dirty bytes to the pool and keeps M.  kWouldBlock: latched exclusively, or beyond the log horizon.
  Status write_back(Line& line, PageId page);

  // --- the worker ----------------------------------------------------------------------------------------------------
  // Answers peers, serves parked requests whose log is flushed, finishes abandoned operations, renews the lease, looks
  // for dead peers; sleeps on the bell while there is nothing to do.  Returns after at most `ms` (<= 100 by habit), at
  // a signal, or with kFenced.  One process of the node at a time.
  Status serve(uint32_t ms) { return server_.serve(ms); }

  // A round of serve() without sleep, for the worker while it does something that takes long.
  void attend() noexcept { server_.attend(); }

  // Returns when all that this session has told peers has arrived.
  void flush_messages() noexcept { messenger_->flush(); }

  // For who has just flushed the log: answers what waited for that, sooner than the worker.
  void serve_flushed() noexcept { server_.serve_flushed(); }

  Memory& memory() { return *memory_; }
  Node& node() { return node_; }
  SessionId id() const { return context_.id; }
  Counters& counters() { return context_.counters; }
  const Counters& counters() const { return context_.counters; }
  // Grows when this session has fetched, evicted or written back a page: who often asks counters() looks here first.
  uint64_t moved() const noexcept { return context_.moved; }

 private:
  friend class EvictionWindow;
  friend struct SessionAccess;  // tests

  Status wrong_page(Line& line, bool exclusive) noexcept {
    requester_.unlock(line, exclusive);
    return Errc::kRestart;
  }

  Node& node_;
  Counters& counters_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Messenger> messenger_;
  SessionContext context_;
  // Each uses those above it.
  Waiting waiting_;
  LatchTable latches_;
  Answers answers_;
  ProtocolDriver driver_;
  MessageServer server_;
  Requester requester_;
  Evictor evictor_;
  FlightRecorder flight_;
};

}  // namespace coherence
