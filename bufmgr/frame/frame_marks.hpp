// FrameMarks: the last two uses of each frame's page; in node-local shared memory.
//
// frames.marked-once-per-epoch: A hit writes a frame's mark only if the mark is not this epoch's.  The epoch moves with
//     evictions, so a node whose working set fits writes nothing at all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace bufmgr {

using coherence::PageId;

// For all threads of all processes of the node; a race costs no more than a mark.  Epochs have 15 bits: a page that was
// not wanted for 32768 of them seems young again, harmlessly.
class FrameMarks {
 public:
  // A use so many epochs back still tells that the page will be wanted: sixteen times a cache's frames in evictions.
  static constexpr uint32_t kRememberedEpochs = 256;

  static size_t bytes_for(uint32_t frames) {
    return sizeof(Shared) + size_t{frames} * (1 + kPastPerFrame) * sizeof(std::atomic<uint32_t>);
  }
  FrameMarks(void* at, uint32_t frames)
      : shared_(static_cast<Shared*>(at)),
        mark_(reinterpret_cast<std::atomic<uint32_t>*>(static_cast<std::byte*>(at) + sizeof(Shared))),
        past_(mark_ + frames),
        frames_(frames) {}

  // The page comes into the frame, which is the caller's.  If the page left not long ago, its use before is known.
  void begin(uint32_t frame, PageId page) noexcept {
    const uint64_t hash = hash_of(page);
    const uint32_t past = past_of(hash).load(std::memory_order_relaxed);
    const bool known = past >> 16 == tag_of(hash) && (past & kKnown);
    mark_[frame].store(epoch() | (known ? kKnownBefore | (past & kEpochs) << 16 : 0), std::memory_order_relaxed);
  }
  // The page leaves the frame, which then looks young for an epoch, so that it is not proposed while free.
  void end(uint32_t frame, PageId page) noexcept {
    const uint64_t hash = hash_of(page);
    const uint32_t last = mark_[frame].load(std::memory_order_relaxed) & kEpochs;
    past_of(hash).store(tag_of(hash) << 16 | kKnown | last, std::memory_order_relaxed);
    mark_[frame].store(epoch(), std::memory_order_relaxed);
  }
  void touch(uint32_t frame) noexcept {
    const uint32_t now = epoch(), mark = mark_[frame].load(std::memory_order_relaxed);
    if ((mark & (kEpochs | kLost)) == now) return;
    const uint32_t last = mark & kEpochs;
    const uint32_t before = last == now ? mark & ~(kEpochs | kLost) : kKnownBefore | last << 16;
    mark_[frame].store(before | now, std::memory_order_relaxed);
  }
  // A peer has taken the page: the frame holds nothing.
  void lose(uint32_t frame) noexcept { mark_[frame].fetch_or(kLost, std::memory_order_relaxed); }

  uint32_t epoch() const noexcept { return shared_->epoch.load(std::memory_order_relaxed) & kEpochs; }
  // Epochs since the frame was touched.
  uint32_t age(uint32_t frame) const noexcept { return since(mark_[frame].load(std::memory_order_relaxed)); }
  // LRU-2, softened: the times since the last use and since the use before count alike, the latter up to a limit.  A
  // page that was used in one epoch only counts as used before at that limit: a scan's pages go before pages that come
  // back.  A lost frame is the least wanted.
  uint32_t unwanted(uint32_t frame) const noexcept {
    const uint32_t mark = mark_[frame].load(std::memory_order_relaxed);
    if (mark & kLost) return kLostUnwanted;
    const uint32_t before = mark & kKnownBefore ? since(mark >> 16) : kRememberedEpochs;
    return since(mark) + (before < kRememberedEpochs ? before : kRememberedEpochs);
  }
  void make_old(uint32_t frame) noexcept {
    const uint32_t mark = mark_[frame].load(std::memory_order_relaxed);
    mark_[frame].store((mark & ~kEpochs) | ((epoch() - 1) & kEpochs), std::memory_order_relaxed);
  }
  void advance() noexcept { shared_->epoch.fetch_add(1, std::memory_order_relaxed); }
  uint32_t frames() const { return frames_; }
  // The hand of SecondChance.
  uint32_t step_hand() noexcept { return shared_->hand.fetch_add(1, std::memory_order_relaxed) % frames_; }
  // Counts evictions; true when it is time for the next epoch.
  bool count_evictions(uint32_t n) noexcept {
    const uint32_t span = frames_ / 16 + 1;
    const uint32_t before = shared_->evictions.fetch_add(n, std::memory_order_relaxed);
    return before / span != (before + n) / span;
  }

 private:
  // A mark: known before (1 bit), the epoch before (15), lost (1), the last epoch (15).  What is remembered of a page
  // that left: a tag (16), known (1), its last epoch (15).
  static constexpr uint32_t kEpochs = 0x7fff, kLost = 0x8000, kKnown = 0x8000, kKnownBefore = 0x80000000;
  static constexpr uint32_t kLostUnwanted = ~uint32_t{0};
  static constexpr uint32_t kPastPerFrame = 2;
  struct alignas(64) Shared {
    std::atomic<uint32_t> epoch;
    alignas(64) std::atomic<uint32_t> hand;
    std::atomic<uint32_t> evictions;
  };
  static uint64_t hash_of(PageId page) { return page.raw * 0x9e3779b97f4a7c15u; }
  static uint32_t tag_of(uint64_t hash) { return uint32_t(hash) >> 16; }
  std::atomic<uint32_t>& past_of(uint64_t hash) const {
    return past_[(hash >> 32) * (kPastPerFrame * uint64_t{frames_}) >> 32];
  }
  uint32_t since(uint32_t then) const noexcept { return (epoch() - then) & kEpochs; }

  Shared* shared_;
  std::atomic<uint32_t>* mark_;
  std::atomic<uint32_t>* past_;  // by a page's hash
  uint32_t frames_;
};

}  // namespace bufmgr
