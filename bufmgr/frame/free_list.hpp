// FreeList: the frames that hold no page, a lock-free stack in node-local shared memory.  Touched on misses only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "bufmgr/frame/frame_table.hpp"

namespace bufmgr {

class FreeList {
 public:
  static size_t bytes_for(uint32_t frames) { return sizeof(Shared) + size_t{frames} * sizeof(std::atomic<uint32_t>); }
  // `at` is 64-byte aligned and zeroed when the list is new (and then empty).
  explicit FreeList(void* at)
      : shared_(static_cast<Shared*>(at)),
        next_(reinterpret_cast<std::atomic<uint32_t>*>(static_cast<std::byte*>(at) + sizeof(Shared))) {}

  void push(uint32_t frame) noexcept {
    uint64_t head = shared_->head.load(std::memory_order_relaxed);
    uint64_t mine;
    do {
      next_[frame].store(uint32_t(head), std::memory_order_relaxed);
      mine = ((head >> 32) + 1) << 32 | (frame + 1);
      // Release: pairs with pop(); the taker sees the frame's clean state.
    } while (!shared_->head.compare_exchange_weak(head, mine, std::memory_order_release, std::memory_order_relaxed));
    shared_->count.fetch_add(1, std::memory_order_relaxed);
  }

  // kNoFrame when empty.
  uint32_t pop() noexcept {
    uint64_t head = shared_->head.load(std::memory_order_acquire);
    uint64_t rest;
    do {
      if (uint32_t(head) == 0) return kNoFrame;
      // The upper half counts changes: a stale `next` loses the exchange.
      rest = ((head >> 32) + 1) << 32 | next_[uint32_t(head) - 1].load(std::memory_order_relaxed);
    } while (!shared_->head.compare_exchange_weak(head, rest, std::memory_order_acquire, std::memory_order_acquire));
    shared_->count.fetch_sub(1, std::memory_order_relaxed);
    return uint32_t(head) - 1;
  }

  uint32_t count() const noexcept {
    const int64_t n = shared_->count.load(std::memory_order_relaxed);
    return n < 0 ? 0 : uint32_t(n);
  }

 private:
  struct alignas(64) Shared {
    std::atomic<uint64_t> head;  // changes << 32 | frame + 1
    alignas(64) std::atomic<int64_t> count;
  };
  Shared* shared_;
  std::atomic<uint32_t>* next_;
};

}  // namespace bufmgr
