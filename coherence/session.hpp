// Session: the coherence of one process (or test thread): latch lines, evict them, serve peers.
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

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/flight_recorder.hpp"
#include "coherence/line/line.hpp"
#include "coherence/line/line_machine.hpp"
#include "coherence/member/node.hpp"
#include "coherence/member/upcalls.hpp"
#include "coherence/message/slots.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/shm/shm_memory.hpp"

namespace coherence {

// What a page is read for.  Who is about to write it becomes its owner when he has to fetch it anyway: a shared copy
// would cost the upgrade later, and messages to all who share it.  A page that is here is read as it is; one that was
// not written the last time, too.
enum class Intent : uint8_t { kRead, kWrite };

// What look() got.
enum class Look : uint8_t {
  kShared,  // the page, latched shared
  kCopied,  // a copy, latched exclusively
};

class Session {
 public:
  Session(Node& node, SessionId id, Interrupts* interrupts);  // interrupts may be null
  ~Session();                                                 // REQUIRES: no latch held; the node still there
  Session(const Session&) = delete;

  // --- latches -------------------------------------------------------------------------------------------------------
  // kHeld: a peer's transaction holds the page.  kNoMemory: this process has no room to map a peer's arena (I18).
  // Neither from try_.
  Status lock_shared(Line& line, PageId page, Intent intent = Intent::kRead) {
    if (hit_shared(line)) return line.page() == page ? Status() : wrong_page_shared(line);
    return lock_slow(line, page, Want::kShared, intent);
  }
  Status lock_exclusive(Line& line, PageId page) {
    if (hit_exclusive(line)) return line.page() == page ? Status() : wrong_page_exclusive(line);
    return lock_slow(line, page, Want::kExclusive, Intent::kWrite);
  }
  // kWouldBlock unless it is a hit (or gamma allows one more local turn).
  Status try_lock_shared(Line& line, PageId page) {
    if (hit_shared(line)) return line.page() == page ? Status() : wrong_page_shared(line);
    return try_slow(line, page, false);
  }
  Status try_lock_exclusive(Line& line, PageId page) {
    if (hit_exclusive(line)) return line.page() == page ? Status() : wrong_page_exclusive(line);
    return try_slow(line, page, true);
  }
  void unlock_shared(Line& line) noexcept {
    LocalWord w{line.latch_.fetch_sub(LocalWord::kSharedOne, std::memory_order_acq_rel) - LocalWord::kSharedOne};
    if (w.raw & (LocalWord::kPending | LocalWord::kWaiters)) unlocked_slow(line, w);
    if (peers_asked()) help();
  }
  void unlock_exclusive(Line& line) noexcept {
    LocalWord w{line.latch_.fetch_add(LocalWord::kUnlockExclusive, std::memory_order_acq_rel) +
                LocalWord::kUnlockExclusive};
    if (w.raw & (LocalWord::kPending | LocalWord::kWaiters)) unlocked_slow(line, w);
    if (peers_asked()) help();
  }
  // X becomes S without letting anybody in between.
  void downgrade(Line& line) noexcept;
  // The optimistic copy made since `token` is still good, and now the latch is held exclusively; kRestart if the page
  // changed, kWouldBlock if it is not a hit (release everything, lock_exclusive, look again).
  Status try_upgrade(Line& line, PageId page, uint64_t token);

  // Transaction-long holds (I16): the node keeps at least S (or M) until dropped; a latch need not be held meanwhile.
  // Peers who ask for what the hold forbids get kHeld, and `by`: the transaction in its node's words, below
  // 2^kHolderBits, or 0.  Of several holds the newest's is told, or 0 once that is dropped.
  // REQUIRES: hold(): the latch is held in that mode now.
  void hold(Line& line, bool exclusive, uint64_t by = 0);
  void drop_hold(Line& line, bool exclusive, uint64_t by = 0);
  // Whose transaction it was, after kHeld: wait for its end, then ask again.  It may be over by now.
  struct Holder {
    NodeId node;
    uint64_t by = 0;
  };
  Holder holder() const noexcept { return holder_; }

  // For who needs to see a page once, and waits for no transaction: as lock_shared(), but what a peer's transaction
  // holds exclusively is copied into the frame as it is at some moment of this call.  A copy is not cached: the node
  // owns nothing afterwards, and no other process sees it.  Ends with end_look(); short, as a latch is.
  Status look(Line& line, PageId page, Look* how) { return lock_slow(line, page, Want::kLook, Intent::kRead, how); }
  void end_look(Line& line, Look how) noexcept;

  // --- frames --------------------------------------------------------------------------------------------------------
  // Gives an unused line its page.  REQUIRES: page() is none; the caller alone may publish it.  In steps, as who
  // publishes it does so under a lock: begin_assign() latches the line, for which it waits where a late comer has it
  // (kFenced, kInterrupted: it is as it was); name() waits for nothing, and may be left out; end_assign() unlatches it.
  Status begin_assign(Line& line);
  void name(Line& line, PageId page) noexcept;
  void end_assign(Line& line) noexcept;
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
  void finish_evict(Line& line);
  // Sends dirty bytes to the pool and keeps M.  kWouldBlock: latched exclusively, or beyond the log horizon.
  Status write_back(Line& line, PageId page);

  // --- the worker ----------------------------------------------------------------------------------------------------
  // Answers peers, serves parked requests whose log is flushed, finishes abandoned operations, renews the lease, looks
  // for dead peers; sleeps on the bell while there is nothing to do.  Returns after at most `ms` (<= 100 by habit), at
  // a signal, or with kFenced.  One process of the node at a time.
  Status serve(uint32_t ms);

  // A round of serve() without sleep, for the worker while it does something that takes long.
  void attend() noexcept;

  // For who has just flushed the log: answers what waited for that, sooner than the worker.
  void serve_flushed() noexcept;

  Memory& memory() { return memory_; }
  Node& node() { return node_; }
  SessionId id() const { return id_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }
  // Grows when this session has fetched, evicted or written back a page: who often asks counters() looks here first.
  uint64_t moved() const noexcept { return moved_; }

 private:
  friend class Node;
  friend class EvictionWindow;
  friend struct LineAccess;  // tests

  static bool hit_shared(Line& line) noexcept {
    uint64_t w = line.latch_.load(std::memory_order_relaxed);
    while (LocalWord{w}.admits_shared())
      if (line.latch_.compare_exchange_weak(w, LocalWord{w}.with_shared().raw, std::memory_order_acquire,  // pairs with
                                            std::memory_order_relaxed))                                    // unlock
        return true;
    return false;
  }
  static bool hit_exclusive(Line& line) noexcept {
    uint64_t w = line.latch_.load(std::memory_order_relaxed);
    while (LocalWord{w}.admits_exclusive())
      if (line.latch_.compare_exchange_weak(w, LocalWord{w}.with_exclusive().raw, std::memory_order_acquire,
                                            std::memory_order_relaxed))
        return true;
    return false;
  }
  Status wrong_page_shared(Line& line) noexcept {
    unlock_shared(line);
    return Errc::kRestart;
  }
  Status wrong_page_exclusive(Line& line) noexcept {
    unlock_exclusive(line);
    return Errc::kRestart;
  }

  // A running process answers peers sooner than a sleeping worker: on busy CPUs by milliseconds.  One load.
  bool peers_asked() const noexcept { return inbox_peers_.load(std::memory_order_relaxed) != 0; }
  void help() noexcept;

  // session_lock.cpp: between the processes of this node
  enum class Entry : uint8_t { kEntered, kFetch, kBlocked };
  enum class Want : uint8_t { kShared, kExclusive, kLook };
  Status lock_slow(Line& line, PageId page, Want want, Intent intent, Look* how = nullptr);
  Status try_slow(Line& line, PageId page, bool exclusive);
  Entry try_enter(Line& line, bool exclusive, bool may_fetch) noexcept;
  bool take_turn(Line& line, bool exclusive) noexcept;
  bool lease_over(const Line& line, uint64_t turns) const noexcept;
  bool promise_turn(Line& line) noexcept;  // whether somebody was woken
  bool promised(const Line& line) const noexcept;
  static void end_promise(Line& line) noexcept;
  Status wait_local(Line& line, bool exclusive);
  void make_way(Line& line) noexcept;  // REQUIRES: the share is about to be dropped for line.state_.serving
  Status stand_back(Line& line);
  Status await_grant(Line& line);
  Status await(Line& line, RequestSlot& slot, Outcome* outcome);
  bool too_early(const Line& line, RequestSlot& slot, bool not_now) noexcept;
  void wait_to_resend(const RequestSlot& slot) noexcept;
  void note_round_trip(uint64_t ns) noexcept;
  RequestSlot* take_slot() noexcept;  // null: all are busy with abandoned operations
  Status pause(uint32_t ms);          // kInterrupted, kFenced
  void sleep_on(const std::atomic<uint32_t>& word, uint32_t seen, Wait what) noexcept;  // a slice
  void unlocked_slow(Line& line, LocalWord after) noexcept;
  int wake_local(Line& line) noexcept;
  static bool try_latch(Line& line) noexcept;  // X, from free
  void end_latch(Line& line, LatchEnd end, MsiState msi) noexcept;
  void serve_if_free(Line& line) noexcept;

  // session_drive.cpp: executes what step() says
  void start(Line& line, RequestSlot& slot, Event::Kind fetch) noexcept;
  Actions step_line(Line& line, const Event& event) noexcept;  // REQUIRES: the line's spinlock
  void run(Line& line, Actions actions, uint16_t slot) noexcept;
  PeerArena* peer(NodeId node) noexcept;
  struct Posted {
    uint64_t old = 0;       // of the atomic
    bool answered = false;  // whom the batch serves, before it was complete (I20)
    struct Granted {
      NodeId to;
      Line* line;
    } granted[kParkedMax + 1];  // those who were answered so by a grant
    int grants = 0;
  };
  Posted post(Line& line, const Actions& actions) noexcept;
  void add_write_back(Batch& batch, Line& line) noexcept;
  void written_back(Line& line) noexcept;
  NodeId ask_first(const Line& line) const noexcept;
  void fill_slot(Line& line, const Actions& actions) noexcept;
  void send(uint16_t slot, const Actions& actions) noexcept;
  enum class Replies : uint8_t { kNone, kTooEarly, kRefusals, kSome };
  Replies collect(Line& line) noexcept;
  bool refused(const Line& line, const RequestSlot& slot, bool* not_now) const noexcept;
  void finish(Line& line, const Actions& actions) noexcept;
  RequestSlot& slot_of(const Line& line) noexcept;

  // session_answer.cpp: what peers ask
  void answer(Line& line, const Actions& actions) noexcept;
  void answer_early(Line& line, Posted* posted) noexcept;
  void grant_early(Line& line, const PeerRequest& request, ReplyKind kind, Posted* posted) noexcept;
  void confirm_grant(NodeId node, Line& landing) noexcept;
  void reply(const PeerRequest& request, ReplyKind kind, const std::byte* page, uint64_t more) noexcept;
  void deliver(PeerArena& there, const PeerRequest& request, ReplyKind kind, const std::byte* page,
               uint64_t more) noexcept;
  bool take_request(RequestSlot& s, NodeId from, uint16_t slot, PeerRequest* request, PageId* page) const noexcept;
  void receive(NodeId from, uint16_t slot) noexcept;
  void serve_parked(Line& line, bool worker) noexcept;
  bool may_leave(const Line& line) noexcept;
  bool logged(const Line& line) noexcept;
  void ask_for_log(const Line& line) noexcept;
  void leave_to_worker(Line& line, bool ring) noexcept;
  void wait_to_leave(Line& line, bool ring) noexcept;

  // session_frames.cpp
  bool begin_evict(Line& line, PageId page, Post* release) noexcept;
  int add_release(Batch& batch, Line& line, Post release) noexcept;
  void end_evict(Line& line, uint64_t old) noexcept;

  // session_serve.cpp
  bool drain_inbox() noexcept;
  bool drain_parked(bool worker) noexcept;
  bool drain_abandoned(bool* moved = nullptr) noexcept;
  void watch() noexcept;
  bool nothing_to_do(bool waiting) noexcept;

  Node& node_;
  SessionId id_;
  Interrupts* interrupts_;
  Counters& counters_;
  ShmMemory memory_;
  SessionSlot& slot_;
  const std::atomic<uint64_t>& inbox_peers_;
  uint64_t moved_ = 0;
  Holder holder_;
  bool helping_ = false;
  uint64_t watched_ns_ = 0;
  uint64_t round_trip_ns_ = 1000;  // of a batch, on average
  bool word_is_near_ = true;       // batches are complete when post() returns: a look costs less than a message
  FlightRecorder flight_;
};

}  // namespace coherence
