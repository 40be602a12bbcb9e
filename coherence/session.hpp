// Session: the coherence of one process (or test thread): latch lines, evict them, serve peers.  A facade: what it does
// is done by its roles, in session/.
//
// session.one-thread: a Session is used by one thread, and made after fork.  Its SessionId is unique in the node while
// it lives.
// session.waits-can-end: a lock waits as long as it takes, but for the fence (kFenced) and Interrupts (kInterrupted:
// nothing changed).
// session.restart-looks-up: kRestart says that the line is another page's by now: the caller looks the page up again.
// session.published-while-latched: a line gets its page, and is what FrameDirectory finds for it, under one latch. Else
// a late session, which had looked the line up when it was the page's before, could share the page while a peer that
// claims it is told that this node has nothing.
// session.operation-outlives-caller: the operation that a lock starts belongs to the line.  If its caller leaves,
// serve() ends it.
//
// Latches are not recursive: coherence.latched-once.
//
// A miss, as bufmgr does it:
//   Line& line = a frame from the free list;        // state I, page none
//   GCL_TRY(session.assign(line, page, publish));   // publish() puts it into the frame table
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
#include "coherence/transport/memory.hpp"

namespace coherence {

class Session final : private UnknownOutcomes {
 public:
  Session(Node& node, SessionId id, Interrupts* interrupts);  // interrupts may be null
  ~Session();                                                 // REQUIRES: no latch held; the node still there
  Session(const Session&) = delete;

  // --- latches -------------------------------------------------------------------------------------------------------
  // kHeld: a peer's transaction holds the page.  kNoMemory: this process has no room to map a peer's arena
  // (coherence.peers-reached-first).  Neither from try_.
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
  // X becomes S; no session comes in between.
  void downgrade(Line& line) noexcept { latches_.end_latch(line, LatchEnd::kToShared, line.msi()); }
  // The optimistic copy made since `token` is still good, and now the latch is held exclusively; kRestart if the page
  // changed, kWouldBlock if it is not a hit (release everything, lock_exclusive, look again).
  Status try_upgrade(Line& line, PageId page, uint64_t token) { return LatchTable::try_upgrade(line, page, token); }

  // Transaction-long holds (coherence.held-until-end): the node keeps at least S (or M) until dropped; a latch need not
  // be held meanwhile.  A peer that asks for what the hold forbids gets kHeld, and `by`: the transaction in its node's
  // words, below 2^kHolderBits, or 0.  Of several holds the newest's is told; once that is dropped, `next`, of a
  // transaction that still holds the page.  REQUIRES: hold(): the latch is held in that mode now.
  void hold(Line& line, bool exclusive, uint64_t by = 0);
  void drop_hold(Line& line, bool exclusive, uint64_t by = 0, uint64_t next = 0);
  // drop_hold() in two steps, for a caller that knows by a lock of its own which transaction holds the page (the first
  // waits for nothing).
  static void uncount_hold(Line& line, bool exclusive, uint64_t by, uint64_t next,
                           const std::atomic<uint32_t>* fence) noexcept;
  void serve_dropped(Line& line) noexcept;
  // After kHeld, the transaction to wait for before asking again.  It may be over by now.
  Holder holder() const noexcept { return requester_.holder(); }

  // As lock_shared(), but waits for no transaction: what a peer's transaction holds exclusively is copied into the
  // frame as it is at some moment of this call (coherence.copy-owns-nothing).  Ends with end_read(); short, as a latch
  // is.
  Status begin_read(Line& line, PageId page, ReadAccess* how) {
    return requester_.lock(line, page, Requester::Want::kRead, Intent::kRead, how);
  }
  void end_read(Line& line, ReadAccess how) noexcept { requester_.unlock(line, how == ReadAccess::kCopied); }

  // --- frames --------------------------------------------------------------------------------------------------------
  // Gives an unused line its page.  REQUIRES: page() is none; the caller alone may publish it, which publish() does
  // (session.published-while-latched).  In steps, for a caller that publishes it under a lock of its own:
  // begin_assign() latches the line, and waits while a late session has it (kFenced, kInterrupted: it is as it was);
  // name() waits for nothing, and may be left out; end_assign() unlatches it.
  Status begin_assign(Line& line) { return evictor_.begin_assign(line); }
  void name(Line& line, PageId page) noexcept { evictor_.name(line, page); }
  void end_assign(Line& line) noexcept { evictor_.end_assign(line); }
  template <class Publish>
  Status assign(Line& line, PageId page, Publish publish) {
    GCL_TRY(begin_assign(line));
    name(line, page);
    publish();
    end_assign(line);
    return {};
  }
  // Gives up the node's ownership of `line`; on success the line is latched for finish_evict() and no session can fetch
  // it anew.  kWouldBlock: latched, held, being fetched, asked for by a peer, or changed beyond the log horizon.
  // kFenced: it is not known whether the page was given up; the line stays as it is.  One round trip; of many at once:
  // EvictionWindow.
  Status try_evict(Line& line, PageId page);
  // After unpublishing: the line is free (page none), late sessions get kRestart.
  void finish_evict(Line& line) { evictor_.finish_evict(line); }
  // Sends dirty bytes to the pool and keeps M.  kWouldBlock: latched exclusively, or beyond the log horizon.  Of many
  // at once: WriteBackGroup.
  Status write_back(Line& line, PageId page);

  // --- the worker ----------------------------------------------------------------------------------------------------
  // Answers peers, serves parked requests whose log is flushed, finishes abandoned operations, looks for dead peers,
  // says that it is alive; sleeps on its wakeup event while there is nothing to do.  Returns after at most `ms`, when
  // it has looked for dead peers, at a signal, with kFenced, or when a node has come, gone or died since it last
  // returned (Node::view()). One process of the node at a time.
  Status serve(uint32_t ms) { return server_.serve(ms); }

  // A round of serve() without sleep, for the worker while it does something that takes long.
  void attend() noexcept { server_.attend(); }

  // --- what dead nodes have (repair.*)
  // --------------------------------------------------------------------------------
  enum class Named : uint8_t { kNot, kOwner };
  // Drops the dead node's bit from the page's latch word, if it is there; whether the word still names the node: as the
  // owner, whose place is taken over by the node that fetches the page.  With `shares`, a line of the page that the
  // caller has latched and this node shares, the owner is dropped, too (repair.share-means-pool-is-newest).  Of a node
  // that is not repairable nothing is dropped: kOwner.
  Result<Named> drop_dead(PageId page, NodeId dead, const Line* shares = nullptr);

  // Returns when all that this session has told peers has arrived.
  void flush_messages() noexcept { messenger_->flush(); }

  // For a session that has just flushed the log: answers what waited for that, sooner than the worker.
  void serve_flushed() noexcept { server_.serve_flushed(); }

  Memory& memory() { return *memory_; }
  // A Memory that stands before this one: the session hears of unknown outcomes there, too, and counts its waits.
  void adopt(Memory& before) noexcept { before.set_user(this, &counters_); }
  Node& node() { return node_; }
  SessionId id() const { return context_.id; }
  Counters& counters() { return context_.counters; }
  const Counters& counters() const { return context_.counters; }
  // Grows when this session has fetched, evicted or written back a page: a caller that often asks counters() looks here
  // first.
  uint64_t moved() const noexcept { return context_.moved; }

 private:
  friend class EvictionWindow;
  friend class WriteBackGroup;
  friend struct SessionAccess;  // tests

  // The node cuts itself off: it goes on as one that died (transport.unknown-cuts-off).
  void outcome_unknown() noexcept override;
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
