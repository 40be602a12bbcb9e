// The records of a mini-transaction: the log's, and the ring's.
#include <algorithm>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/log/record_writer.hpp"
#include "bufmgr/mini_transaction.hpp"

namespace bufmgr {

static_assert(MiniTransaction::kRecordShapeMax + kMiniPagesMax * kPageSize <= kMiniRecordMax);

// Bytes that the record has at most.
uint32_t MiniTransaction::record_bound() const {
  uint32_t bytes = kRecordShapeMax;
  for (int i = 0; i < ranges_; ++i) bytes += range_[i].zero ? 0 : range_[i].bytes;
  return bytes;
}

std::span<std::byte> MiniTransaction::build_record(std::byte* to) const {
  RecordWriter record(to, pool_.node());
  for (int p = 0; p < pages_; ++p) {
    uint32_t steps = 0;
    for (int i = 0; i < copies_; ++i) steps += copy_[i].page == p;
    for (int i = 0; i < ranges_; ++i) steps += range_[i].page == p;
    const std::byte* const bytes = joined_[p].bytes;
    record.page(joined_[p].id, reinterpret_cast<const PageHeader*>(bytes)->version + 1, steps);
    for (int i = 0; i < copies_; ++i)
      if (copy_[i].page == p) record.copy(copy_[i].to, copy_[i].bytes, copy_[i].from);
    for (int i = 0; i < ranges_; ++i) {
      const Range& range = range_[i];
      if (range.page != p) continue;
      if (range.zero)
        record.zero(range.offset, range.bytes);
      else
        record.bytes(range.offset, bytes + range.offset, range.bytes);
    }
  }
  return record.finish();
}

// Copies become ranges: what they wrote is read from the page, as all ranges are (log.ring-has-bytes).
void MiniTransaction::spell_out_copies() {
  for (; copies_ > 0; --copies_) {
    const Copied& copy = copy_[copies_ - 1];
    const Range fresh{copy.page, false, copy.to, copy.bytes};
    if (!absorb(fresh)) range_[ranges_++] = fresh;  // it may come last: it has the page's final bytes
  }
  for (uint8_t p = 0; p < pages_; ++p) write_whole_if_shorter(p);
}

// Copies may overlap each other: the record stays within kMiniRecordMax all the same.
void MiniTransaction::write_whole_if_shorter(uint8_t page) {
  constexpr uint16_t kFrom = sizeof(PageHeader::version), kBytes = kPageSize - kFrom;
  uint32_t bytes = 0;
  for (int i = 0; i < ranges_; ++i) bytes += range_[i].page == page && !range_[i].zero ? range_[i].bytes : 0;
  if (bytes <= kBytes) return;
  Range* const end = std::remove_if(range_, range_ + ranges_, [page](const Range& r) { return r.page == page; });
  ranges_ = uint16_t(end - range_);
  range_[ranges_++] = {page, false, kFrom, kBytes};
}

}  // namespace bufmgr
