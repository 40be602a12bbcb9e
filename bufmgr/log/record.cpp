#include "bufmgr/log/record.hpp"

#include <cstring>

#include "bufmgr/log/packing.hpp"
#include "bufmgr/log/record_v3.hpp"
#include "coherence/base/crc32c.hpp"

namespace bufmgr {

using coherence::Errc;
using coherence::Problem;
using coherence::Result;
using coherence::Status;

namespace {

// The checksum is of all that follows it.
uint32_t frame_crc(std::span<const std::byte> framed) noexcept {
  constexpr size_t kSummedAt = sizeof(RecordFrame::checksum);
  return coherence::crc32c(0, framed.data() + kSummedAt, framed.size() - kSummedAt);
}

static_assert(RecordHeader::kOldest == record_v3::kFormat);

// Records of a ring have it, and former ones of a log.
bool has_whole_header(const RecordHeader& header) noexcept {
  return header.format == RecordHeader::kFormat || header.format == record_v3::kFormat;
}
bool is_known(const RecordHeader& header) noexcept {
  return has_whole_header(header) || header.format == RecordHeader::kBrief;
}

// Reads the header; returns what is behind it, nullptr: there are too few bytes.  Of another format only the format
// counts.
const std::byte* read_header(std::span<const std::byte> record, RecordHeader* header) noexcept {
  *header = {};
  constexpr uint32_t kBriefBytes = RecordHeader::kBriefBytes;
  if (record.size() < kBriefBytes) return nullptr;
  std::memcpy(header, record.data(), kBriefBytes);
  if (!is_known(*header)) return record.data();
  if (has_whole_header(*header)) {
    if (record.size() < sizeof *header) return nullptr;
    std::memcpy(header, record.data(), sizeof *header);
    return record.data() + sizeof *header;
  }
  uint64_t rest;
  const std::byte* const next = get_varint(record.data() + kBriefBytes, record.data() + record.size(), &rest);
  header->sequence |= (rest << RecordHeader::kBriefBits) & RecordHeader::kSequenceMax;
  return next;
}

}  // namespace

void seal_record(std::span<std::byte> framed, uint64_t sequence) noexcept {
  const std::span<std::byte> record = framed.subspan(sizeof(RecordFrame));
  RecordHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  header.sequence = sequence & RecordHeader::kSequenceMax;
  std::memcpy(record.data(), &header, sizeof header);
  RecordFrame frame{0, uint32_t(record.size())};
  std::memcpy(framed.data(), &frame, sizeof frame);
  frame.checksum = frame_crc(framed);
  std::memcpy(framed.data(), &frame.checksum, sizeof frame.checksum);
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
  if (!has_whole_header(header)) return Errc::kIncompatible;
  return record;
}

Status check_format(std::span<const std::byte> record) noexcept {
  RecordHeader header;
  if (read_header(record, &header) == nullptr) return Errc::kCorrupt;
  return is_known(header) ? Status() : Errc::kIncompatible;
}

Status check_format(std::span<const std::byte> record, Problem* problem) noexcept {
  const Status readable = check_format(record);
  if (readable.error() == Errc::kIncompatible) return refuse_format(record, problem);
  if (!readable) problem->set(readable.error(), "%zu bytes are too few for a redo record", record.size());
  return readable;
}

Errc refuse_format(std::span<const std::byte> record, Problem* problem) noexcept {
  RecordHeader header;
  (void)read_header(record, &header);
  const auto format = unsigned(header.format);
  const char* const helps = format < RecordHeader::kOldest
                                ? "an earlier version of gcl wrote it: start the cluster with that one, stop all "
                                  "primaries in order, and upgrade then"
                                : "a later version of gcl wrote it: use that one";
  return problem->set(Errc::kIncompatible, "a redo record has format %u, and formats %u to %u are read here; %s",
                      format, RecordHeader::kOldest, RecordHeader::kBrief, helps);
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
  const bool before = header_.format == record_v3::kFormat;
  const std::byte* const next = before ? record_v3::get_offset(at_, end_, &number) : get_varint(at_, end_, &number);
  if (next == nullptr || number > kPageSize) return false;
  at_ = next;
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
