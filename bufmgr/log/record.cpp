#include "bufmgr/log/record.hpp"

#include <cstring>

#include "bufmgr/log/packing.hpp"
#include "coherence/base/crc32c.hpp"

namespace bufmgr {

using coherence::Errc;
using coherence::Result;
using coherence::Status;

namespace {

// The checksum is of all that follows it.
uint32_t frame_crc(std::span<const std::byte> framed) noexcept {
  constexpr size_t kSummedAt = sizeof(RecordFrame::checksum);
  return coherence::crc32c(0, framed.data() + kSummedAt, framed.size() - kSummedAt);
}

constexpr uint64_t kSequenceMax = (uint64_t{1} << 54) - 1;
constexpr uint32_t kBriefBytes = 2, kBriefBits = 6;  // before the varint; of the sequence in these

bool is_known(const RecordHeader& header) noexcept {
  return header.format == RecordHeader::kFormat || header.format == RecordHeader::kBrief;
}

// Reads the header; returns what is behind it, nullptr: there are too few bytes.  Of another format only the format
// counts.
const std::byte* read_header(std::span<const std::byte> record, RecordHeader* header) noexcept {
  *header = {};
  if (record.size() < kBriefBytes) return nullptr;
  std::memcpy(header, record.data(), kBriefBytes);
  if (!is_known(*header)) return record.data();
  if (header->format == RecordHeader::kFormat) {
    if (record.size() < sizeof *header) return nullptr;
    std::memcpy(header, record.data(), sizeof *header);
    return record.data() + sizeof *header;
  }
  uint64_t rest;
  const std::byte* const next = get_varint(record.data() + kBriefBytes, record.data() + record.size(), &rest);
  header->sequence |= (rest << kBriefBits) & kSequenceMax;
  return next;
}

}  // namespace

void seal_record(std::span<std::byte> framed, uint64_t sequence) noexcept {
  const std::span<std::byte> record = framed.subspan(sizeof(RecordFrame));
  RecordHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  header.sequence = sequence & kSequenceMax;
  std::memcpy(record.data(), &header, sizeof header);
  RecordFrame frame{0, uint32_t(record.size())};
  std::memcpy(framed.data(), &frame, sizeof frame);
  frame.checksum = frame_crc(framed);
  std::memcpy(framed.data(), &frame.checksum, sizeof frame.checksum);
}

std::span<std::byte> record_for_log(std::span<std::byte> framed, uint64_t sequence) noexcept {
  RecordHeader header;
  std::memcpy(&header, framed.data() + sizeof(RecordFrame), sizeof header);
  header.format = RecordHeader::kBrief;
  header.sequence = sequence & kSequenceMax;
  std::byte brief[kBriefBytes + kVarintMax];
  std::memcpy(brief, &header, kBriefBytes);
  const std::byte* const end = put_varint(brief + kBriefBytes, header.sequence >> kBriefBits);
  const auto bytes = size_t(end - brief);
  const auto record = framed.subspan(sizeof(RecordFrame) + sizeof header - bytes);
  std::memcpy(record.data(), brief, bytes);
  return record;
}

Result<std::span<const std::byte>> framed_record(std::span<const std::byte> bytes, uint64_t sequence) noexcept {
  RecordFrame frame;
  if (bytes.size() < sizeof frame + sizeof(RecordHeader)) return Errc::kNotFound;
  std::memcpy(&frame, bytes.data(), sizeof frame);
  if (frame.bytes < sizeof(RecordHeader) || frame.bytes > bytes.size() - sizeof frame) return Errc::kNotFound;
  if (frame.checksum != frame_crc(bytes.first(sizeof frame + frame.bytes))) return Errc::kNotFound;
  const auto record = bytes.subspan(sizeof frame, frame.bytes);
  RecordHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  if (header.sequence != sequence) return Errc::kNotFound;
  if (header.format != RecordHeader::kFormat) return Errc::kIncompatible;
  return record;
}

Status check_format(std::span<const std::byte> record) noexcept {
  RecordHeader header;
  if (read_header(record, &header) == nullptr) return Errc::kCorrupt;
  return is_known(header) ? Status() : Errc::kIncompatible;
}

RecordReader::RecordReader(std::span<const std::byte> record) noexcept {
  at_ = read_header(record, &header_);
  end_ = record.data() + record.size();
  corrupt_ = at_ == nullptr || !is_known(header_);
}

bool RecordReader::take(uint64_t* number) noexcept {
  const std::byte* const next = get_varint(at_, end_, number);
  if (next != nullptr) at_ = next;
  return next != nullptr;
}

bool RecordReader::take_offset(uint16_t* offset) noexcept {
  uint64_t number;
  if (!take(&number) || number > kPageSize) return false;
  *offset = uint16_t(number);
  return true;
}

const RecordPage* RecordReader::next_page() noexcept {
  while (next_step() != nullptr) {
  }
  if (corrupt_ || at_ == end_) return nullptr;
  corrupt_ = !read_page();
  return corrupt_ ? nullptr : &page_;
}

bool RecordReader::read_page() noexcept {
  uint64_t number, steps;
  if (!take(&number)) return false;
  coherence::MemoryNodeId node;
  if ((number & 1) != 0) {
    if (at_ == end_) return false;
    node.value = uint8_t(*at_++);
  }
  if (!take(&page_.version) || !take(&steps) || steps > kPageSize) return false;
  page_.page = PageId::at(node, number >> 1);
  page_.steps = left_ = uint32_t(steps);
  step_ = {};
  step_.offset = kPageSize;
  step_.bytes = 1;  // nothing is adjacent to it
  return true;
}

const RecordStep* RecordReader::next_step() noexcept {
  if (corrupt_ || left_ == 0) return nullptr;
  --left_;
  corrupt_ = !read_step();
  return corrupt_ ? nullptr : &step_;
}

bool RecordReader::read_step() noexcept {
  if (at_ == end_) return false;
  const auto head = uint32_t(*at_++);
  constexpr uint32_t kLong = RecordStep::kLongLength;
  uint64_t length = head >> RecordStep::kLengthShift;
  if (length == kLong && (!take(&length) || (length += kLong) > kPageSize)) return false;
  length += 1;
  uint32_t offset = step_.end();
  if ((head & RecordStep::kAdjacent) == 0) {
    uint16_t given;
    if (!take_offset(&given)) return false;
    offset = given;
  }
  if (offset < sizeof(PageHeader::version) || offset + length > kPageSize) return false;
  step_ = {.kind = RecordStep::Kind(head & RecordStep::kKindMask),
           .offset = uint16_t(offset),
           .bytes = uint16_t(length),
           .source = 0,
           .data = {}};
  const std::byte* next = at_;
  switch (step_.kind) {
    case RecordStep::kBytes:
      next = uint64_t(end_ - at_) < length ? nullptr : at_ + length;
      break;
    case RecordStep::kPacked:
      next = unpack(at_, end_, nullptr, step_.bytes);
      break;
    case RecordStep::kZero:
      break;
    case RecordStep::kCopy:
      return take_offset(&step_.source) && step_.source >= sizeof(PageHeader::version) &&
             step_.source + length <= kPageSize;
  }
  if (next == nullptr) return false;
  step_.data = {at_, next};
  at_ = next;
  return true;
}

}  // namespace bufmgr
