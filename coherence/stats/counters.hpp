// Counters of one session: plain numbers in its arena slot, one writer, any reader.  Hits are not counted here, nor
// anywhere that two backends write.
#pragma once

#include <atomic>
#include <cstdint>

namespace coherence {

enum class Counter : uint8_t {
  kBatches,  // batches posted to the pool
  kReads,    // verbs
  kWrites,
  kCas,
  kFaa,
  kLoads,
  kBytesRead,
  kBytesWritten,
  kMissShared,  // operations begun
  kMissExclusive,
  kUpgrades,
  kUpgradeFallbacks,
  kPeerRdSent,  // requests, by kind
  kPeerWrSent,
  kPeerInvSent,
  kPeerRdReceived,
  kPeerWrReceived,
  kPeerInvReceived,
  kGrantSSent,  // replies, by kind; grants carry a page
  kGrantMSent,
  kDoneSent,
  kDroppedSent,
  kGrantSReceived,
  kGrantMReceived,
  kDoneReceived,
  kDroppedReceived,
  kEvictClean,
  kEvictDirty,
  kWriteBacks,  // pages written back and kept
  kParked,      // requests that met a busy line
  kFlushWaits,  // requests parked for the log horizon
  kServedByUnlocker,
  kServedByWorker,
  kLocalWaits,  // sleeps on a line held by this node
  kPeerWaits,   // sleeps on a peer's reply
  kAbandoned,   // operations whose caller left
  kStoodBack,   // fetches put off for a peer's writer
  kCopySent,
  kCopyReceived,
  kHeldSent,
  kHeldReceived,
  kResendWaits,  // refused requests that were sent again after a while
  kOutdated,     // messages about what was answered before
  kOverlapped,   // batches of transitions that were posted while another of the session was under way
  kRepairs,      // pages taken over from dead nodes
  kAwaited,      // round trips that a session waited for (transport.waits-counted)
  kCount,
};
inline constexpr int kCounters = int(Counter::kCount);

struct Counters {
  std::atomic<uint64_t> value[kCounters];

  // Single writer: no atomic addition.
  void add(Counter c, uint64_t n = 1) noexcept {
    auto& v = value[int(c)];
    v.store(v.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t get(Counter c) const noexcept { return value[int(c)].load(std::memory_order_relaxed); }
};

const char* counter_name(Counter c) noexcept;

}  // namespace coherence
