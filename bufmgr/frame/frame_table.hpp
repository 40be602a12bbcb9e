// FrameTable: which frame holds a page.  In node-local shared memory, used by every process of the node at once.
//
// frames.lookup-writes-nothing: A look-up writes nothing.  It may miss a page that is being inserted or removed, and
//     may return a frame that now has another page: a session that acts on it latches the line and compares its page.
// frames.bucket-is-cache-line: A bucket is one cache line: seven slots, a lock and a count.  With two slots per frame
//     few pages lie outside their home bucket.  The home bucket counts them; if it counts none, a miss ends there.
// frames.dead-locker-fences: The death of a process that holds a bucket's lock ends its node.  Where it fences the
//     pool, a session that waits for the lock goes on without it: what the table says is of no use any more.  Where
//     deaths are repaired, the host ends the node's other processes (extension.orphans-end-server, or the server's
//     crash restart).
// frames.no-wait-in-bucket: A session waits for nothing under a bucket's lock.  One that waits for the lock itself
//     sleeps (coherence::SpinGuard).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/os.hpp"

namespace bufmgr {

using coherence::PageId;

inline constexpr uint32_t kNoFrame = ~uint32_t{0};

class FrameTable {
 public:
  static size_t bytes_for(uint32_t frames);
  // `at` is 64-byte aligned and zeroed when the table is new; `fence` is not 0 once the pool is fenced.
  FrameTable(void* at, uint32_t frames, const std::atomic<uint32_t>& fence);

  // The frame of `page` for which `holds(frame)` agrees, or kNoFrame.
  template <class Holds>
  uint32_t find(PageId page, const Holds& holds) const noexcept {
    const Place place = place_of(page);
    const Bucket& home = buckets_[place.bucket];
    if (const uint32_t frame = find_in(home, place.tag, holds); frame != kNoFrame) return frame;
    // Pairs with the release in enter(): an entry counted before this load is found.
    if (home.away.load(std::memory_order_acquire) == 0) return kNoFrame;
    return find_away(place, holds);
  }

  // Enters `page` -> `frame` unless the page is there already: returns the frame it is in then, kNoFrame if entered.
  // `prepare()` makes the frame the page's; it runs just before entering, and no session can remove() the page in
  // between (frames.no-wait-in-bucket).
  template <class Holds, class Prepare>
  uint32_t insert(PageId page, uint32_t frame, const Holds& holds, const Prepare& prepare) noexcept {
    const Place place = place_of(page);
    const coherence::SpinGuard hold(buckets_[place.bucket].lock, fence_);
    const uint32_t found = find(page, holds);
    if (found == kNoFrame) {
      prepare();
      enter(place, frame);
    }
    return found;
  }

  // REQUIRES: the page is in the table with this frame.
  void remove(PageId page, uint32_t frame) noexcept;

 private:
  static constexpr int kSlots = 7;
  struct alignas(64) Bucket {
    std::atomic<uint32_t> lock;          // SpinGuard's
    std::atomic<uint32_t> away;          // entries of this home that lie elsewhere
    std::atomic<uint64_t> slot[kSlots];  // tag << 32 | frame + 1; 0: empty
  };
  struct Place {
    uint32_t bucket;
    uint32_t tag;
  };

  Place place_of(PageId page) const noexcept {
    uint64_t hash = page.raw * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
    hash *= 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 32;
    return {uint32_t(hash) & mask_, uint32_t(hash >> 32)};
  }
  template <class Holds>
  static uint32_t find_in(const Bucket& bucket, uint32_t tag, const Holds& holds) noexcept {
    for (const auto& slot : bucket.slot) {
      const uint64_t entry = slot.load(std::memory_order_acquire);  // pairs with enter()
      if (entry != 0 && uint32_t(entry >> 32) == tag && holds(uint32_t(entry) - 1)) return uint32_t(entry) - 1;
    }
    return kNoFrame;
  }
  template <class Holds>
  uint32_t find_away(Place place, const Holds& holds) const noexcept {
    const uint32_t far = farthest_->load(std::memory_order_relaxed);
    for (uint32_t step = 1; step <= far; ++step) {
      const uint32_t frame = find_in(buckets_[(place.bucket + step) & mask_], place.tag, holds);
      if (frame != kNoFrame) return frame;
    }
    return kNoFrame;
  }
  bool fenced() const noexcept;
  void enter(Place, uint32_t frame) noexcept;

  Bucket* buckets_;
  std::atomic<uint32_t>* farthest_;  // how far from home any entry ever lay, in buckets
  const std::atomic<uint32_t>* fence_;
  uint32_t mask_;
};

}  // namespace bufmgr
