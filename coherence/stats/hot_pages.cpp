#include "coherence/stats/hot_pages.hpp"

#include <algorithm>
#include <iterator>

#include "coherence/base/os.hpp"

namespace coherence {
namespace {

uint64_t& counter_of(HotPage& entry, PageMessage message) {
  switch (message) {
    case PageMessage::kRequestSent:
      return entry.requests_sent;
    case PageMessage::kRequestReceived:
      return entry.requests_received;
    case PageMessage::kPageSent:
      return entry.pages_sent;
    case PageMessage::kPageReceived:
      break;
  }
  return entry.pages_received;
}

uint64_t weight(const HotPage& entry) { return entry.messages() + entry.missed_max; }

bool hotter(const HotPage& a, const HotPage& b) {
  return a.messages() != b.messages() ? a.messages() > b.messages() : a.page < b.page;
}

}  // namespace

void HotPages::count(PageId page, PageMessage message, const std::atomic<uint32_t>* fence) noexcept {
  const uint64_t key = page.raw + 1;
  Bucket& at = bucket[(key * 0x9E3779B97F4A7C15ull) >> 57];
  static_assert(kBuckets == 1 << 7);
  SpinGuard guard(at.lock, fence);
  HotPage* coldest = at.entry;
  for (HotPage& entry : at.entry) {
    if (entry.page == key) {
      ++counter_of(entry, message);
      return;
    }
    if (weight(entry) < weight(*coldest)) coldest = &entry;  // an empty one weighs nothing
  }
  *coldest = HotPage{.page = key, .missed_max = weight(*coldest)};
  ++counter_of(*coldest, message);
}

uint32_t HotPages::top(HotPage* to, uint32_t room, const std::atomic<uint32_t>* fence) noexcept {
  uint32_t count = 0;
  for (Bucket& at : bucket) {
    SpinGuard guard(at.lock, fence);
    for (const HotPage& entry : at.entry) {
      if (entry.page == 0 || room == 0) continue;
      if (count == room && !hotter(entry, to[count - 1])) continue;
      if (count < room) ++count;
      uint32_t i = count - 1;
      for (; i > 0 && hotter(entry, to[i - 1]); --i) to[i] = to[i - 1];
      to[i] = entry;
    }
  }
  return count;
}

void HotPages::reset(const std::atomic<uint32_t>* fence) noexcept {
  for (Bucket& at : bucket) {
    SpinGuard guard(at.lock, fence);
    std::fill(std::begin(at.entry), std::end(at.entry), HotPage{});
  }
}

}  // namespace coherence
