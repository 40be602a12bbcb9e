// HotPages: which pages cost the most messages, counted where a message is sent or received and nowhere else: a hit
// does not come here.  A fixed table in the node's arena, of the heavy hitters (space saving, in buckets of eight).
//
// hot_pages.counted-exactly: a page that is in the table is counted exactly since it came in.
// hot_pages.coldest-replaced: a page that finds its bucket full takes the place of the page with the fewest messages.
// `missed_max` says how many messages of its own may have gone uncounted before.  So a page with more messages than any
// place's count is in.
// hot_pages.lock-is-leaf: nothing is asked or latched under a bucket's lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace coherence {

struct HotPage {
  uint64_t page = 0;  // raw PageId + 1; 0: none
  uint64_t requests_sent = 0;
  uint64_t requests_received = 0;
  uint64_t pages_sent = 0;  // grants: each carries the page
  uint64_t pages_received = 0;
  uint64_t missed_max = 0;
  PageId id() const { return PageId{page - 1}; }
  uint64_t messages() const { return requests_sent + requests_received + pages_sent + pages_received; }
};

enum class PageMessage : uint8_t { kRequestSent, kRequestReceived, kPageSent, kPageReceived };

// Zero-filled memory is an empty table.
struct HotPages {
  static constexpr uint32_t kBuckets = 128, kWays = 8;
  struct alignas(64) Bucket {
    std::atomic<uint32_t> lock;
    HotPage entry[kWays];
  };
  Bucket bucket[kBuckets];

  // `fence`: see SpinGuard.
  void count(PageId page, PageMessage message, const std::atomic<uint32_t>* fence) noexcept;
  // The hottest first, at most `room`; returns how many.
  uint32_t top(HotPage* to, uint32_t room, const std::atomic<uint32_t>* fence) noexcept;
  void reset(const std::atomic<uint32_t>* fence) noexcept;
};

}  // namespace coherence
