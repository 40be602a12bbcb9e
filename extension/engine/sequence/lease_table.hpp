// LeaseTable: what a node has leased of sequences and not handed out yet, for all its sessions.
//
// sequence.lease-one-generation: A lease is of one generation of one page; for a call with another generation there is
//     no lease.
// sequence.values-leave-once: Values leave the table once.  A lease that is overwritten (another sequence has the same
//     slot) or forgotten leaves a gap.
//
// Lies in memory that all processes of the node map; zeroed is empty.  All calls are short and never wait but for each
// other.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace engine {

// Values first, first + step, ...: `count` of them.
struct SequenceRun {
  int64_t first = 0;
  uint64_t count = 0;

  static int64_t moved(int64_t from, uint64_t times, int64_t step) {
    return int64_t(uint64_t(from) + times * uint64_t(step));
  }
  int64_t last(int64_t step) const { return moved(first, count - 1, step); }
  SequenceRun take(uint64_t wanted, int64_t step) {
    const SequenceRun taken{first, wanted < count ? wanted : count};
    first = moved(first, taken.count, step);
    count -= taken.count;
    return taken;
  }
};

struct Lease {
  coherence::PageId page;
  uint64_t generation = 0;
  int64_t step = 0;
  int64_t end = 0;   // the last value that was leased
  SequenceRun left;  // not handed out yet
};

class LeaseTable {
 public:
  static constexpr uint32_t kSlots = 1024;

  // Up to `wanted` values of the page's lease; count 0: there is none of this generation.
  SequenceRun take(coherence::PageId page, uint64_t generation, uint64_t wanted) noexcept;
  void put(const Lease& lease) noexcept;
  // The lease, if there is one of this generation, used up or not.
  bool find(coherence::PageId page, uint64_t generation, Lease* to) noexcept;

 private:
  struct Slot {
    std::atomic<uint32_t> lock{0};
    Lease lease;
  };
  Slot& slot_of(coherence::PageId page) { return slot_[(page.raw * 0x9E3779B97F4A7C15ull) >> 54]; }
  static_assert(kSlots == 1u << (64 - 54));

  Slot slot_[kSlots];
};

}  // namespace engine
