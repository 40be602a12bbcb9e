#include "bufmgr/frame/frame_table.hpp"

#include <algorithm>
#include <bit>

#include "coherence/base/verify.hpp"

namespace bufmgr {
namespace {

uint32_t buckets_for(uint32_t frames) { return std::bit_ceil(std::max(frames * 2 / 7, uint32_t{8})); }

}  // namespace

size_t FrameTable::bytes_for(uint32_t frames) { return 64 + size_t{buckets_for(frames)} * sizeof(Bucket); }

FrameTable::FrameTable(void* at, uint32_t frames, const std::atomic<uint32_t>& fence)
    : buckets_(reinterpret_cast<Bucket*>(static_cast<std::byte*>(at) + 64)),
      farthest_(static_cast<std::atomic<uint32_t>*>(at)),
      fence_(&fence),
      mask_(buckets_for(frames) - 1) {}

bool FrameTable::fenced() const noexcept { return fence_->load(std::memory_order_relaxed) != 0; }

void FrameTable::enter(Place place, uint32_t frame) noexcept {
  const uint64_t entry = uint64_t{place.tag} << 32 | (frame + 1);
  for (uint32_t step = 0; step <= mask_; ++step) {
    for (auto& slot : buckets_[(place.bucket + step) & mask_].slot) {
      uint64_t empty = 0;
      if (slot.load(std::memory_order_relaxed) != 0) continue;
      // Other homes may claim the same slot.  Release: pairs with find_in().
      if (!slot.compare_exchange_strong(empty, entry, std::memory_order_release, std::memory_order_relaxed)) continue;
      if (step != 0) {
        uint32_t far = farthest_->load(std::memory_order_relaxed);
        while (far < step && !farthest_->compare_exchange_weak(far, step, std::memory_order_relaxed)) {
        }
        buckets_[place.bucket].away.fetch_add(1, std::memory_order_release);  // pairs with find()
      }
      return;
    }
  }
  VERIFY(fenced());  // else the table has room: there are more slots than frames
}

void FrameTable::remove(PageId page, uint32_t frame) noexcept {
  const Place place = place_of(page);
  const uint64_t entry = uint64_t{place.tag} << 32 | (frame + 1);
  const coherence::SpinGuard hold(buckets_[place.bucket].lock, fence_);
  const uint32_t far = farthest_->load(std::memory_order_relaxed);
  for (uint32_t step = 0; step <= far; ++step) {
    for (auto& slot : buckets_[(place.bucket + step) & mask_].slot) {
      if (slot.load(std::memory_order_relaxed) != entry) continue;
      slot.store(0, std::memory_order_release);  // pairs with the claim in enter()
      if (step != 0) buckets_[place.bucket].away.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
  }
  VERIFY(fenced());  // else the page is in the table
}

}  // namespace bufmgr
