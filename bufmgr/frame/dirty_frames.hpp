// DirtyFrames: the frames whose changes the ring must keep, in lists by the ring position of their first change.  So
// a session that empties the ring looks at the frames of its oldest part, and not at all frames of the node.
//
// frames.dirty-is-listed: A frame with a change that is not in the pool yet is in the list of the ring's part where the
//     first such change lies, or of an earlier part, or with the session that has taken that list.  A session lists it
//     with each change, before the ring is complete up to that (LogGate).  A session that takes a list looks at each
//     frame's line, and puts it back where its first change lies now, or drops it if there is none.  It counts as
//     listed until it is dropped, so no session, which may stand still in the middle of it, ever lists a frame that had
//     changes before.
//
// A part is a 32nd of the ring, and what must be kept spans 34 parts at most: no two of them share one of the 64 lists.
// In the node's arena; any process.  One session at a time takes lists (provider.one-tail-mover).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bufmgr {

class DirtyFrames {
 public:
  static constexpr uint32_t kLists = 64;
  static size_t bytes_for(uint32_t frames) { return sizeof(Shared) + size_t{frames} * sizeof(Link); }
  // `at` is 64-byte aligned and zeroed when the lists are new.
  DirtyFrames(void* at, uint64_t ring_bytes)
      : shared_(static_cast<Shared*>(at)),
        link_(reinterpret_cast<Link*>(static_cast<std::byte*>(at) + sizeof(Shared))),
        part_bytes_(ring_bytes / (kLists / 2) + 1) {}

  uint64_t part_of(uint64_t position) const noexcept { return position / part_bytes_; }
  uint64_t start_of(uint64_t part) const noexcept { return part * part_bytes_; }

  // Unless it is listed already.  REQUIRES: the first change that is not in the pool is at `position`, or later.
  void list(uint32_t frame, uint64_t position) noexcept {
    // An exchange even if it is listed: a session that drops it later sees the change in the line (pairs with drop()).
    if (link_[frame].listed.exchange(1, std::memory_order_acq_rel) == 0) push(frame, position);
  }

  // Empties a part's list, and calls visit(frame) for each frame that was in it, which is the caller's then: to be put
  // back or dropped, now or later.
  template <class Visit>
  void take(uint64_t part, const Visit& visit) {
    uint32_t next = shared_->newest[part % kLists].exchange(0, std::memory_order_acquire);
    while (next != 0) {
      const uint32_t frame = next - 1;
      next = link_[frame].next.load(std::memory_order_relaxed);  // before it may be put back
      visit(frame);
    }
  }
  // REQUIRES: as list(), and the frame was taken.
  void put_back(uint32_t frame, uint64_t position) noexcept { push(frame, position); }
  // REQUIRES: the frame was taken.  The caller looks at the line once more, and lists it if it has a change: the
  // session of that change may have found it listed still.
  void drop(uint32_t frame) noexcept { link_[frame].listed.exchange(0, std::memory_order_acq_rel); }

 private:
  void push(uint32_t frame, uint64_t position) noexcept {
    std::atomic<uint32_t>& newest = shared_->newest[part_of(position) % kLists];
    uint32_t before = newest.load(std::memory_order_relaxed);
    do {
      link_[frame].next.store(before, std::memory_order_relaxed);
      // Release: pairs with take(), which follows `next`.
    } while (!newest.compare_exchange_weak(before, frame + 1, std::memory_order_release, std::memory_order_relaxed));
  }

  struct Link {
    std::atomic<uint32_t> next;    // frame + 1; 0: the last one
    std::atomic<uint32_t> listed;  // 1: it is in a list, on its way there, or taken
  };
  struct alignas(64) Shared {
    std::atomic<uint32_t> newest[kLists];  // frame + 1; 0: none
  };
  Shared* shared_;
  Link* link_;
  uint64_t part_bytes_;
};

}  // namespace bufmgr
