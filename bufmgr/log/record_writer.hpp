// RecordWriter: puts a redo record together (record.hpp).
//
//   RecordWriter record(buffer, node);
//   record.page(id, version, 2);
//   record.copy(200, 80, 100);
//   record.bytes(64, page + 64, 8);
//   const std::span<std::byte> framed = record.finish();   // seal_record() comes next
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "bufmgr/log/packing.hpp"
#include "bufmgr/log/record.hpp"
#include "coherence/base/ids.hpp"

namespace bufmgr {

// Bytes that a page or a step takes besides what it carries.
inline constexpr uint32_t kRecordPageMax = 2 * kVarintMax + 2;
inline constexpr uint32_t kRecordStepMax = 7;

class RecordWriter {
 public:
  // `to` has room for the frame, the record and kPackingSlack.
  RecordWriter(std::byte* to, coherence::NodeId node) noexcept
      : frame_(to), at_(to + sizeof(RecordFrame) + sizeof(RecordHeader)), node_(node) {}

  void page(PageId page, uint64_t version, uint32_t steps) noexcept {
    const uint8_t memory_node = page.node().value;
    at_ = put_varint(at_, page.number() << 1 | (memory_node != 0 ? 1 : 0));
    if (memory_node != 0) *at_++ = std::byte{memory_node};
    at_ = put_varint(at_, version);
    at_ = put_varint(at_, steps);
    last_end_ = kPageSize + 1;
  }
  // Copies come first (log.copies-come-first).  REQUIRES, of all steps: bytes > 0.
  void copy(uint32_t offset, uint32_t bytes, uint32_t source) noexcept {
    begin(RecordStep::kCopy, offset, bytes);
    at_ = put_varint(at_, source);
  }
  void zero(uint32_t offset, uint32_t bytes) noexcept { begin(RecordStep::kZero, offset, bytes); }
  void bytes(uint32_t offset, const std::byte* from, uint32_t bytes) noexcept {
    std::byte* const step = at_;
    begin(RecordStep::kPacked, offset, bytes);
    const bool try_packed = bytes >= kPackedMin && bytes <= kPackedMax;
    const uint32_t packed = try_packed ? pack(at_, from, bytes, bytes) : 0;
    if (packed == 0) {
      *step = (*step & ~std::byte{RecordStep::kKindMask}) | std::byte(RecordStep::kBytes);
      std::memcpy(at_, from, bytes);
    }
    at_ += packed != 0 ? packed : bytes;
  }

  // Frame and record, but for what seal_record() fills in.
  std::span<std::byte> finish() noexcept {
    const RecordHeader header{.format = RecordHeader::kFormat, .node = node_.value & 63u, .sequence = 0};
    std::memcpy(frame_ + sizeof(RecordFrame), &header, sizeof header);
    return {frame_, at_};
  }

 private:
  // Packing fewer bytes wins nothing.  Longer runs are the rows of a COPY, or parts of index pages: packing them takes
  // longer than it saves.
  static constexpr uint32_t kPackedMin = 8, kPackedMax = 256;

  void begin(RecordStep::Kind kind, uint32_t offset, uint32_t bytes) noexcept {
    const bool adjacent = offset == last_end_;
    constexpr uint32_t kLong = RecordStep::kLongLength;
    const uint32_t code = bytes <= kLong ? bytes - 1 : kLong;
    *at_++ = std::byte(uint32_t(kind) | (adjacent ? RecordStep::kAdjacent : 0) | code << RecordStep::kLengthShift);
    if (code == kLong) at_ = put_varint(at_, bytes - kLong - 1);
    if (!adjacent) at_ = put_varint(at_, offset);
    last_end_ = offset + bytes;
  }

  std::byte* frame_;
  std::byte* at_;
  coherence::NodeId node_;
  uint32_t last_end_ = kPageSize + 1;  // of the step before, on its page
};

}  // namespace bufmgr
