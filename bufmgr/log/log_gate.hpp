// LogGate: the position up to which changed pages may leave the node.  The one choke-point of log.redo-before-page:
// coherence asks flushed() before every hand-over, eviction and write-back, and a commit asks ring_complete().
//
// log.work-is-marked: A session has a mark in a shared word from before its record takes its place until its lines know
//     of it; what it announced is written before the mark is.  So a reader loads a word for 64 sessions, and looks
//     at the sessions that are at work, whatever the number of sessions.
// log.push-keeps-bytes: Bytes that are on their way to the pool are kept, and nothing takes their place in the ring,
//     until they have arrived: a session that pushes says from where on, and then begins where all before is in the
//     pool by now.  The session that moves the tail loads up to where that is, and then looks what the sessions say.
#pragma once

#include <atomic>
#include <cstdint>

#include "bufmgr/base/provider_call.hpp"
#include "bufmgr/log/log_sink.hpp"
#include "bufmgr/log/redo_ring.hpp"
#include "coherence/member/node.hpp"
#include "coherence/member/upcalls.hpp"

namespace bufmgr {

class LogGate final : public coherence::LogHorizon {
 public:
  // One per session, in the node's arena; written by that session only, and it counts while the session is marked.
  struct alignas(64) Announcement {
    std::atomic<uint64_t> floor;
    std::atomic<uint64_t> head;     // of the ring, before the record took its place
    std::atomic<uint64_t> pushing;  // redo from there on may be on its way to the pool; 0: none.  It counts always
  };
  // A bit for each of 64 sessions.
  struct alignas(64) Marks {
    std::atomic<uint64_t> word;
  };
  static constexpr uint32_t kOfOneWord = 64;
  struct Shared {
    alignas(64) std::atomic<uint64_t> last_lsn;  // the highest position append() returned
    alignas(64) std::atomic<uint32_t> sessions;  // those at or above this index were never used
    std::atomic<uint32_t> held;                  // which found the gate held by a session at work: kWorker, kCommits
    std::atomic<uint32_t> let_go;                // futex word: grows when such a session withdraws
    std::atomic<uint64_t> pushed_lsn;            // the redo of all up to there is in the pool
    std::atomic<uint32_t> push_wanted;           // 1: a page waits to leave for its redo to be in the pool
    Marks at_work[(coherence::kSessionsMax + kOfOneWord - 1) / kOfOneWord];
  };

  // `provider`: it pushes when it is called.
  LogGate(coherence::Node* node, Shared* shared, Announcement* announcements, RedoRing* ring, ProviderCall provider)
      : node_(node), shared_(shared), announcements_(announcements), ring_(ring), provider_(provider) {}

  // The process's sink; attach() sets it.
  void set_sink(LogSink* sink) { sink_.store(sink, std::memory_order_release); }  // pairs with sink()
  LogSink* sink() const { return sink_.load(std::memory_order_acquire); }
  void enlist(coherence::SessionId) noexcept;

  // --- around a commit -----------------------------------------------------------------------------------------------
  void announce(coherence::SessionId) noexcept;
  void appended(coherence::Lsn) noexcept;
  // After the lines know of their change.  Rings the message worker if it was kept waiting.
  void withdraw(coherence::SessionId) noexcept;

  // Every record below this ring position is written, and the lines of its pages know.
  uint64_t ring_complete() const noexcept;

  // --- around a push (redo_push.hpp) ---------------------------------------------------------------------------------
  struct Push {
    uint64_t from, upto;
    uint64_t lsn;  // of records up to there nothing lies behind `upto`
  };
  // `known`: below it the ring is known to be complete.
  Push begin_push(coherence::SessionId, uint64_t known) noexcept;
  void arrived(const Push&) noexcept;
  void end_push(coherence::SessionId) noexcept;
  // What is on its way lies behind this: the tail may be there (log.push-keeps-bytes).
  uint64_t kept_from() const noexcept;
  bool push_wanted() const noexcept { return shared_->push_wanted.load(std::memory_order_seq_cst) != 0; }
  // Before the push; false: none is wanted.
  bool take_push_request() noexcept { return push_wanted() && shared_->push_wanted.exchange(0) != 0; }

  // For a session that commits (log.ring-before-prepared).  To sleep until a session withdraws, at most `ms`, unless
  // the ring is complete up to `position`: then true, at once.
  bool wait_complete(uint64_t position, uint32_t ms) noexcept;

  // --- LogHorizon ----------------------------------------------------------------------------------------------------
  coherence::Lsn flushed() noexcept override;
  void request_flush(coherence::Lsn lsn) noexcept override;
  void push(coherence::SessionId, coherence::Memory&) noexcept override;

 private:
  static constexpr uint32_t kWorker = 1, kCommits = 2;
  static constexpr uint64_t kNone = ~uint64_t{0};
  // The lowest of what the sessions at work have announced; kNone: none is.
  uint64_t lowest(std::atomic<uint64_t> Announcement::*what) const noexcept;
  template <class See>
  void for_each_at_work(const See& see) const noexcept;
  static uint64_t mark_of(coherence::SessionId id) noexcept { return uint64_t{1} << id.value % kOfOneWord; }

  coherence::Node* node_;
  Shared* shared_;
  Announcement* announcements_;
  RedoRing* ring_;
  ProviderCall provider_;
  std::atomic<LogSink*> sink_{nullptr};
};

}  // namespace bufmgr
