#include "coherence/session/write_back.hpp"

#include <bit>

namespace coherence {
namespace {

constexpr int kRangesMax = kWriteBackOpsMax - 1;  // a page changed in more places is written whole
constexpr uint32_t kVersionBytes = 8;             // the page's first word

}  // namespace

void add_write_back(const NodeParts& node, Batch& batch, Line& line) noexcept {
  uint64_t dirty[2];
  for (int i = 0; i < 2; i++)
    dirty[i] = fields(line).dirty[i].exchange(0, std::memory_order_acquire);  // pairs with note_hint()
  if (auto& all = fields(line).all_dirty; all.load(std::memory_order_acquire)) {
    all.store(false, std::memory_order_relaxed);
    dirty[0] = dirty[1] = ~uint64_t{0};
  }
  PoolAddress at = node.pool.page_address(line.page());
  const Registered frame = node.frame_memory(line);
  auto is_dirty = [&](uint32_t i) { return i < 128 && (dirty[i / 64] >> i % 64 & 1); };
  int ranges = std::popcount(dirty[0] & ~(dirty[0] << 1)) + std::popcount(dirty[1] & ~(dirty[1] << 1 | dirty[0] >> 63));
  const bool version = is_dirty(0);
  auto write = [&](uint32_t from, uint32_t end) {
    if (from == 0) from = kVersionBytes;
    batch.write(at + from, frame + from, end - from);
  };
  if (ranges > kRangesMax) {
    write(version ? 0 : 64, kPageSize);
  } else {
    for (uint32_t i = 0; i < 128;) {
      uint32_t end = i;
      while (is_dirty(end)) end++;
      if (end > i) write(i * 64, end * 64);
      i = end + 1;
    }
  }
  if (version) batch.write(at, frame, kVersionBytes);  // repair.version-written-last
}

void add_whole_page(const NodeParts& node, Batch& batch, Line& line) noexcept {
  const PoolAddress at = node.pool.page_address(line.page());
  const Registered frame = node.frame_memory(line);
  batch.write(at + kVersionBytes, frame + kVersionBytes, kPageSize - kVersionBytes);
  batch.write(at, frame, kVersionBytes);  // repair.version-written-last
}

void written_back(Line& line) noexcept { fields(line).first_change.store(Line::kNoChange, std::memory_order_release); }

}  // namespace coherence
