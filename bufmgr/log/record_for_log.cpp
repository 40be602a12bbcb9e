// Apart from the readers: a test exchanges it for the writer of a former format.
#include <cstring>

#include "bufmgr/log/packing.hpp"
#include "bufmgr/log/record.hpp"

namespace bufmgr {

std::span<std::byte> record_for_log(std::span<std::byte> framed, uint64_t sequence) noexcept {
  constexpr uint32_t kBriefBytes = RecordHeader::kBriefBytes;
  RecordHeader header;
  std::memcpy(&header, framed.data() + sizeof(RecordFrame), sizeof header);
  header.format = RecordHeader::kBrief;
  header.sequence = sequence & RecordHeader::kSequenceMax;
  std::byte brief[kBriefBytes + kVarintMax];
  std::memcpy(brief, &header, kBriefBytes);
  const std::byte* const end = put_varint(brief + kBriefBytes, header.sequence >> RecordHeader::kBriefBits);
  const auto bytes = size_t(end - brief);
  const auto record = framed.subspan(sizeof(RecordFrame) + sizeof header - bytes);
  std::memcpy(record.data(), brief, bytes);
  return record;
}

}  // namespace bufmgr
