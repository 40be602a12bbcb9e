#include "coherence/session/write_back.hpp"

#include <bit>

namespace coherence {
namespace {

constexpr int kRangesMax = kWriteBackOpsMax - 1;  // a page changed in more places is written whole

}  // namespace

void add_write_back(const NodeParts& node, Batch& batch, Line& line) noexcept {
  uint64_t dirty[2];
  for (int i = 0; i < 2; i++)
    dirty[i] = fields(line).dirty[i].exchange(0, std::memory_order_acquire);  // pairs with note_hint()
  PoolAddress at = node.pool.page_address(line.page());
  const Registered frame = node.frame_memory(line);
  auto is_dirty = [&](uint32_t i) { return i < 128 && (dirty[i / 64] >> i % 64 & 1); };
  int ranges = std::popcount(dirty[0] & ~(dirty[0] << 1)) + std::popcount(dirty[1] & ~(dirty[1] << 1 | dirty[0] >> 63));
  bool header = is_dirty(0);
  if (ranges > kRangesMax) {
    batch.write(at + 64, frame + 64, kPageSize - 64);
  } else {
    for (uint32_t i = 1; i < 128;) {
      uint32_t end = i;
      while (is_dirty(end)) end++;
      if (end > i) batch.write(at + i * 64, frame + i * 64, (end - i) * 64);
      i = end + 1;
    }
  }
  if (header) batch.write(at, frame, 64);
}

void written_back(Line& line) noexcept { fields(line).first_change.store(Line::kNoChange, std::memory_order_release); }

}  // namespace coherence
