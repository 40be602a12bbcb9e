// Session: what one process (or test thread) of a node needs to touch pages.  BufferPool::attach() makes it after fork;
// one thread uses it.  It holds the transport, the request slots, the ledger of guards, and counters of its own (a hit
// counts in nothing shared).
//
// guards.all-in-ledger: Every guard is in the ledger while it lives, at most 32 at a time.  release_all() ends what an
//     abort left behind, ring space included.
// guards.one-latch-per-page: No session latches a page that it holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "bufmgr/frame/replacement.hpp"
#include "bufmgr/log/log_sink.hpp"
#include "bufmgr/log/redo_push.hpp"
#include "bufmgr/ordered_memory.hpp"
#include "bufmgr/page_holds.hpp"
#include "bufmgr/wait_order.hpp"
#include "coherence/base/failure_report.hpp"
#include "coherence/base/ids.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/member/upcalls.hpp"
#include "coherence/session.hpp"

namespace bufmgr {

class BufferPool;

// What the process above answers; implemented in extension/pg and in tests.
class Interrupts : public coherence::Interrupts {
 public:
  // Called with no guard held when no page was found, `tries` times before: waits a little for pages that are being
  // given back.  False: none are, or the process waits no longer.
  virtual bool room_comes(uint32_t /* tries */) noexcept { return false; }
};

inline constexpr int kGuardsMax = 32;  // of one session at a time

enum class Count : uint8_t {
  kFixes,          // shared and exclusive guards given
  kPeeks,          // optimistic guards given
  kCopies,         // whole pages copied out
  kFurtherGuards,  // further guards that one page access took
  kRestarts,       // a frame got another page during a look-up
  kFramesTaken,    // pages given a frame
  kFrameWaits,     // no free frame: evicted on the spot
  kEvicted,
  kMiniTransactions,
  kRedoBytes,
  kRingWaits,    // no ring space: wrote back on the spot
  kOverdrafts,   // a record outgrew its reservation
  kWrittenBack,  // by ring age
  kPagesAllocated,
  kPagesFreed,
  kDirtied,  // clean pages changed, by hints too
  kCount,
};
inline constexpr int kCounts = int(Count::kCount);
const char* count_name(Count) noexcept;

// In the node's arena, one per session slot: one writer, any reader.  Grows over the lives of all sessions of the slot.
struct alignas(64) BufferCounts {
  std::atomic<uint64_t> value[kCounts];
  void add(Count c, uint64_t n = 1) noexcept {
    auto& v = value[int(c)];
    v.store(v.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t get(Count c) const noexcept { return value[int(c)].load(std::memory_order_relaxed); }
};

// Pages that a session has moved or changed, as its host shows them.  Differences count: the numbers grow over the
// lives of all sessions of the slot.
struct PageTraffic {
  uint64_t fetched;  // bytes came from a memory node or another node
  uint64_t dirtied;
  uint64_t written;  // to the pool, to evict a page or to shorten the ring
};

class Session {
 public:
  ~Session();  // releases what is left; debug builds say what it was
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  coherence::SessionId id() const { return coherence_.id(); }
  BufferPool& pool() { return pool_; }
  coherence::Session& coherence() { return coherence_; }
  // For words of the pool (log.ring-before-words).
  coherence::Memory& memory() { return ordered_; }
  // For words that lead to no page, and for what was pushed before.
  coherence::Memory& unordered_memory() { return coherence_.memory(); }
  const BufferCounts& counts() const { return counts_; }
  // Hits and misses since the session began (bufmgr.accesses-counted-once).  traffic() changes only when moved() does.
  uint64_t page_accesses() const noexcept { return page_accesses_; }
  uint64_t moved() const noexcept { return dirtied_ + coherence_.moved(); }
  PageTraffic traffic() const noexcept {
    using coherence::Counter;
    const coherence::Counters& moved = coherence_.counters();
    return {.fetched = moved.get(Counter::kMissShared) + moved.get(Counter::kMissExclusive) +
                       moved.get(Counter::kUpgradeFallbacks),
            .dirtied = counts_.get(Count::kDirtied),
            .written = moved.get(Counter::kEvictDirty) + moved.get(Counter::kWriteBacks)};
  }
  bool interrupted() noexcept { return interrupts_.pending(); }
  Interrupts& interrupts() noexcept { return interrupts_; }

  // Waits until no session of this node is at work on a record before the last one of this session, so that
  // begin_push() has all of this session's (log.ring-before-prepared).  kFenced, kInterrupted.  REQUIRES: no guard
  // held.
  coherence::Status wait_ring_complete() noexcept;
  RedoPush begin_push() noexcept;
  // Brings what is complete to the pool: one round trip, or none.  kFenced: transport.unknown-cuts-off.
  coherence::Status push_redo() noexcept;
  // Brings all that this session has changed, or seen changed, to the pool, also under guards: for what takes effect
  // without a commit.
  coherence::Status push_what_was_seen() noexcept;

  // --- what transactions hold (page_holds.hpp) -----------------------------------------------------------------------
  // From the start of the session on; null: its transactions hold nothing, and no transaction of its node stops it.
  void set_holds(PageHolds* holds) noexcept { holds_ = holds; }
  // Whether the running transaction holds what it reads and writes.
  void set_holding(bool holding) noexcept { holding_ = holding; }
  bool holding() const noexcept { return holding_; }
  // If so, the page is held.  REQUIRES: no guard held.  Otherwise as PageHolds::hold().
  coherence::Result<bool> hold_to_read(PageId page, Parts parts = kWholePage, Intent intent = Intent::kRead) {
    return holding_ ? holds_->hold(page, false, parts, intent) : coherence::Result<bool>(false);
  }
  coherence::Result<bool> hold_to_write(PageId page, Parts parts = kWholePage) {
    return holding_ ? holds_->hold(page, true, parts, Intent::kWrite) : coherence::Result<bool>(false);
  }
  coherence::Status hold_part(PageId from, ExclusiveGuard& part) {
    return holding_ ? holds_->hold_part(from, part) : coherence::Status();
  }
  // After kHeld: which transaction holds the page.  It may be over by now.
  coherence::Holder held_by() const noexcept { return held_by_; }
  void note_held_by(coherence::Holder holder) noexcept { held_by_ = holder; }  // for PageHolds

  // What is held now.
  int guards_held() const { return held_; }
  uint64_t ring_reserved() const { return reserved_; }
  // Claims the order of the next fix_ that is called while guards are held (guards.ordered-waits).  Debug builds check
  // the claim, and that there is one.
  void next_wait([[maybe_unused]] WaitOrder order) noexcept {
#ifndef NDEBUG
    next_wait_ = order;
#endif
  }
  // Ends every guard and returns every reservation.  For aborts that ran no destructors.
  void release_all() noexcept;

 private:
  friend class BufferPool;
  friend class MiniTransaction;
  friend class SharedGuard;
  friend class ExclusiveGuard;
  friend class PageProvider;
  friend class WaitCheck;
  friend class OrderedMemory;

  struct Held {
    coherence::Line* line;
    bool exclusive;
  };
  // Tells what is latched when an invariant is broken.
  struct HeldReport final : coherence::FailureReport {
    explicit HeldReport(Session& s) : session(s) {}
    void tell(Out&) const noexcept override;
    Session& session;
  };
  Session(BufferPool& pool, coherence::Node& node, coherence::SessionId id, Interrupts& interrupts, LogSink& log,
          BufferCounts& counts, std::unique_ptr<Replacement> replacement);

  bool holds(const coherence::Line& line) const noexcept {
    for (int i = 0; i < held_; ++i) {
      if (ledger_[i].line == &line) return true;
    }
    return false;
  }
  // In the header, as all of a hit, which takes some twenty nanoseconds: calls between files were a third of them.
  void note_guard(coherence::Line& line, bool exclusive) noexcept {
    VERIFY(held_ < kGuardsMax);
    ledger_[held_++] = {&line, exclusive};
  }
  // False if the ledger does not know the guard: release_all() came first.
  bool forget_guard(const coherence::Line& line, bool exclusive) noexcept {
    for (int i = held_; i-- > 0;) {  // the newest is the likeliest
      if (ledger_[i].line != &line || ledger_[i].exclusive != exclusive) continue;
      if (i != --held_) ledger_[i] = ledger_[held_];
      return true;
    }
    return false;
  }
  void note_access(Count how) noexcept {
    counts_.add(how);
    ++page_accesses_;
  }
  void note_access_again() noexcept {
    counts_.add(Count::kFurtherGuards);
    --page_accesses_;
  }
  void note_dirtied(uint64_t pages) noexcept {
    counts_.add(Count::kDirtied, pages);
    dirtied_ += pages;
  }
  void end_shared(coherence::Line& line) noexcept {
    if (forget_guard(line, false)) coherence_.unlock_shared(line);
  }
  void end_exclusive(coherence::Line& line) noexcept {
    if (forget_guard(line, true)) coherence_.unlock_exclusive(line);
  }

  // Whether no other transaction of this node holds the page, which was just latched exclusively, but for `others`;
  // else the latch ends.
  bool may_change(coherence::Line& line, PageId page, Others others = Others::kNone) noexcept {
    if (line.free_of_holds() || holds_ == nullptr || others == Others::kChecked) return true;
    return (others == Others::kOfOtherParts && holding_ && holds_->writes(page)) || look_at_holds(line, page);
  }
  bool look_at_holds(coherence::Line& line, PageId page) noexcept;

  BufferPool& pool_;
  coherence::Session coherence_;
  OrderedMemory ordered_{*this};
  Interrupts& interrupts_;
  LogSink& log_;
  BufferCounts& counts_;
  std::unique_ptr<Replacement> replacement_;
  // Of the mini-transaction that commits: kMiniRecordMax for the log, and as many for the ring.
  std::unique_ptr<std::byte[]> record_;
  uint64_t reserved_ = 0;        // ring bytes promised to this session's mini-transactions
  uint64_t redo_end_ = 0;        // ring position behind its last record
  uint64_t complete_below_ = 0;  // the ring is known to be
  uint64_t page_accesses_ = 0;
  uint64_t dirtied_ = 0;
  int held_ = 0;
  bool holding_ = false;
  PageHolds* holds_ = nullptr;
  coherence::Holder held_by_;
  Held ledger_[kGuardsMax];
  HeldReport held_report_{*this};
#ifndef NDEBUG
  WaitOrder next_wait_ = WaitOrder::kAlone;
#endif
};

// One wait for a page, in debug builds: made before it, told of the page after it.  Other builds have nothing.
class WaitCheck {
 public:
#ifdef NDEBUG
  WaitCheck(Session&, PageId) noexcept {}
  void latched(const coherence::Line&) const noexcept {}
  void again() const noexcept {}
#else
  WaitCheck(Session& session, PageId wanted) noexcept;
  void latched(const coherence::Line& wanted) const noexcept;
  // Lends the claim to a fix_ that is part of this wait.
  void again() const noexcept { session_.next_wait_ = claimed_; }

 private:
  LatchedPage seen(const coherence::Line& line) const noexcept;
  Session& session_;
  WaitOrder claimed_;
#endif
};

}  // namespace bufmgr
