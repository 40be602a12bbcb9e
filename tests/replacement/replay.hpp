// How many accesses of a trace find their page in a cache of so many frames.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bufmgr/frame/replacement.hpp"
#include "bufmgr/page_provider.hpp"
#include "tests/replacement/recorder.hpp"
#include "tests/support/cluster_fixture.hpp"

namespace gcl_test {

// True LRU: the page leaves that was not accessed for the longest time.
class TrueLru {
 public:
  explicit TrueLru(uint32_t frames) : frames_(frames) {}
  bool access(uint64_t page) {
    if (auto found = at_.find(page); found != at_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    if (order_.size() == frames_) {
      at_.erase(order_.back());
      order_.pop_back();
    }
    at_[page] = order_.insert(order_.begin(), page);
    return false;
  }

 private:
  uint32_t frames_;
  std::list<uint64_t> order_;  // the newest first
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> at_;
};

// One of the product's policies, over the product's marks, in the place of LRU.
class PolicyCache {
 public:
  template <class Make>
  PolicyCache(uint32_t frames, const Make& make)
      : memory_(bufmgr::FrameMarks::bytes_for(frames) + 64),
        marks_(reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory_.data()) + 63) & ~uintptr_t{63}), frames),
        policy_(make(marks_)),
        page_in_(frames, kNone) {
    for (uint32_t frame = frames; frame-- > 0;) free_.push_back(frame);
  }
  // `mark`: whether a hit is noted, as it should be.
  bool access(uint64_t page, bool mark = true) {
    if (auto found = frame_of_.find(page); found != frame_of_.end()) {
      if (mark) marks_.touch(found->second);
      return true;
    }
    for (int round = 0; free_.empty(); ++round) evict(round);
    const uint32_t frame = free_.back();
    free_.pop_back();
    page_in_[frame] = page;
    frame_of_[page] = frame;
    if (mark) marks_.begin(frame, bufmgr::PageId{page});
    return false;
  }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  void evict(int round) {
    uint32_t proposed[bufmgr::PageProvider::kEvictOnTheSpot];
    const int count = policy_->propose(proposed, int(std::size(proposed)), round);
    int freed = 0;
    for (int i = 0; i < count; ++i) {
      uint64_t& page = page_in_[proposed[i]];
      if (page == kNone) continue;
      marks_.end(proposed[i], bufmgr::PageId{page});
      frame_of_.erase(page);
      page = kNone;
      free_.push_back(proposed[i]);
      ++freed;
    }
    if (freed > 0) policy_->evicted(freed);
  }

  std::vector<std::byte> memory_;
  bufmgr::FrameMarks marks_;
  std::unique_ptr<bufmgr::Replacement> policy_;
  std::vector<uint64_t> page_in_;
  std::unordered_map<uint64_t, uint32_t> frame_of_;
  std::vector<uint32_t> free_;
};

// The product itself: a node's buffer pool with its provider, which is as quick here as it should be.
class WholePool {
 public:
  WholePool(uint32_t frames, uint32_t pages, bufmgr::ReplacementKind kind)
      : cluster_({.nodes = 1, .frames = frames, .memory_nodes = 1, .workers = false, .replacement = kind}),
        session_(cluster_.session(0)) {
    for (uint32_t p = 0; p < pages; p += 64) extents_.push_back(*pool().allocate(*session_, 64));
  }
  bool access(uint64_t page) {
    const uint64_t before = session_->traffic().fetched;
    EXPECT_TRUE(pool().fix_optimistic(*session_, extents_[page / 64] + page % 64).ok());
    if (pool().free_frames() <= bufmgr::PageProvider::low_mark(pool().frames()))
      (void)pool().run_provider_once(cluster_.provider_session(0));
    return session_->traffic().fetched == before;
  }

 private:
  bufmgr::BufferPool& pool() { return cluster_.pool(0); }
  Cluster cluster_;
  std::unique_ptr<bufmgr::Session> session_;
  std::vector<bufmgr::PageId> extents_;
};

// In percent of all accesses.
template <class Cache, class... How>
double hit_ratio(const Trace& trace, Cache&& cache, How... how) {
  uint64_t hits = 0;
  for (const uint64_t page : trace) hits += cache.access(page, how...);
  return 100 * double(hits) / double(trace.size());
}

}  // namespace gcl_test
