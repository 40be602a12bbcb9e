// Port: memory that all processes of a node share, where sessions leave batches for the network worker and find what
// came of them.
//
// port.one-session-a-place: A place is one session's, of one thread, from take_place() to give_place_back().
// port.entry-changes-hands: An entry is its session's, until the bit of `posted` is set; the worker's, until the bit of
// `done` is set; then its session's again.  Nobody else touches it meanwhile, nor bytes of Ops that name memory here.
// port.dies-with-its-node: A process that is killed in the middle leaves what is here in any state.  Its node ends, and
// the port with it: nothing here is repaired.
//
// The memory has the same address in all processes, as what was mapped before they were forked has: Ops name places in
// it, and in the arena, by address.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "coherence/base/problem.hpp"
#include "coherence/message/slots.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/tcp/base/worker_wakeup.hpp"
#include "coherence/transport/tcp/memory/batch_frame.hpp"

namespace coherence::tcp {

inline constexpr int kEntriesEach = 32;                     // batches of a session
inline constexpr uint32_t kBytesEach = 2 * kPlainBytesMax;  // for bytes of its batches that are not Registered

struct PortPlace;

// A batch on its way.
struct PortEntry {
  MemoryNodeId to;
  uint8_t count;
  bool known;           // when it is done: whether its outcome is
  Op op[kBatchOpsMax];  // [0, count) are set; `local` is in the arena, or in the place's `bytes`
  std::span<Op> ops() noexcept { return {op, count}; }
  // The worker's own:
  PortPlace* place;
  PortEntry* next;
  uint32_t tag, result_bytes;
};

struct alignas(64) PortPlace {
  std::atomic<uint32_t> in_use;
  std::atomic<uint32_t> posted;  // bit e: entry e is the worker's, which has not taken it yet
  alignas(64) std::atomic<uint32_t> done;
  std::atomic<uint32_t> sleeping;  // the session sleeps on `done`
  PortEntry entry[kEntriesEach];
  alignas(64) std::byte bytes[kBytesEach];
};

class Port {
 public:
  static constexpr int kPlacesMax = kSessionsMax;
  static uint64_t bytes_for(int places) noexcept;

  // In the process that the node's others come from, before they do.  `memory`: zeros, bytes_for(places) of them at a
  // multiple of 64, shared by all of them, and there for as long, as `worker_wakeup` is.
  Port(void* memory, int places, WorkerWakeup& worker_wakeup) noexcept;
  Port(const Port&) = delete;

  // --- of sessions

  // Null: all are taken.
  PortPlace* take_place() noexcept;
  // REQUIRES: none of its batches is under way.
  void give_back(PortPlace&) noexcept;
  // Entries, as bits, are the worker's from now on; never waits.  If there is no worker any more, they are done.
  void post(PortPlace&, uint32_t entries) noexcept;

  // --- of the worker

  // take(place, entries) for each place that has posted some; whether one has.
  template <class Take>
  bool take_posted(Take take) noexcept;
  // The entry is its session's again.
  void done(PortPlace&, int entry, bool known) noexcept;
  // Whether some place has posted something since take_posted().
  bool any_posted() const noexcept;
  // The worker takes no more; but once, behind this, what was posted before.
  void close() noexcept { header_->closed.store(1, std::memory_order_seq_cst); }
  WorkerWakeup& worker_wakeup() noexcept { return worker_wakeup_; }

 private:
  static constexpr int kWords = kPlacesMax / 64;
  struct Header {
    alignas(64) std::atomic<uint64_t> posted[kWords];  // bit p: place p has posted something
    std::atomic<uint32_t> closed;
  };
  Header* const header_;
  PortPlace* const place_;
  const int places_;
  WorkerWakeup& worker_wakeup_;
};

template <class Take>
bool Port::take_posted(Take take) noexcept {
  bool any = false;
  for (int w = 0; w < kWords; w++) {
    if (header_->posted[w].load(std::memory_order_relaxed) == 0) continue;
    for (uint64_t left = header_->posted[w].exchange(0, std::memory_order_seq_cst); left; left &= left - 1) {
      PortPlace& place = place_[w * 64 + std::countr_zero(left)];
      const uint32_t entries = place.posted.exchange(0, std::memory_order_acquire);  // pairs with post()
      if (entries != 0) take(place, entries);
      any |= entries != 0;
    }
  }
  return any;
}

}  // namespace coherence::tcp
