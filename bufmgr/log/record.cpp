#include "bufmgr/log/record.hpp"

#include <array>
#include <cstring>

namespace bufmgr {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0x82f63b78 : value >> 1;
    table[i] = value;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

uint32_t crc_portable(uint32_t crc, const unsigned char* bytes, size_t count) {
  for (; count != 0; ++bytes, --count) crc = kCrcTable[(crc ^ *bytes) & 0xff] ^ crc >> 8;
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc_hardware(uint32_t crc, const unsigned char* bytes, size_t count) {
  uint64_t wide = crc;
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  auto narrow = uint32_t(wide);
  for (; count != 0; ++bytes, --count) narrow = __builtin_ia32_crc32qi(narrow, *bytes);
  return narrow;
}
#endif

uint32_t record_crc(std::span<const std::byte> record) noexcept {
  RecordHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  header.checksum = 0;
  const uint32_t crc = crc32c(0, &header, sizeof header);
  return crc32c(crc, record.data() + sizeof header, record.size() - sizeof header);
}

}  // namespace

uint32_t crc32c(uint32_t seed, const void* bytes, size_t count) noexcept {
  const auto* at = static_cast<const unsigned char*>(bytes);
#if defined(__x86_64__)
  static const bool hardware = __builtin_cpu_supports("sse4.2");
  if (hardware) return ~crc_hardware(~seed, at, count);
#endif
  return ~crc_portable(~seed, at, count);
}

void seal_record(std::span<std::byte> record, uint64_t sequence) noexcept {
  auto* header = reinterpret_cast<RecordHeader*>(record.data());
  header->sequence = sequence;
  header->checksum = record_crc(record);
}

bool sound_record(std::span<const std::byte> bytes, uint64_t sequence) noexcept {
  if (bytes.size() < sizeof(RecordHeader)) return false;
  RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != RecordHeader::kMagic || header.sequence != sequence) return false;
  if (header.bytes < sizeof header || header.bytes % 8 != 0 || header.bytes > bytes.size()) return false;
  return header.checksum == record_crc(bytes.first(header.bytes));
}

const RecordPage* RecordReader::next() noexcept {
  if (corrupt_ || at_ == record_.size()) return nullptr;
  const auto left = record_.size() - at_;
  const auto* page = reinterpret_cast<const RecordPage*>(record_.data() + at_);
  if (left < sizeof *page || left - sizeof *page < page->ranges * sizeof(RecordRange)) {
    corrupt_ = true;
    return nullptr;
  }
  const size_t shape = sizeof *page + page->ranges * sizeof(RecordRange);
  ranges_ = reinterpret_cast<const RecordRange*>(page + 1);
  data_ = record_.data() + at_ + shape;
  uint64_t bytes = 0;
  for (int i = 0; i < page->ranges; ++i) {
    if (ranges_[i].offset + ranges_[i].bytes() > kPageSize) corrupt_ = true;
    if (!ranges_[i].zero()) bytes += ranges_[i].bytes();
  }
  const size_t whole = (shape + bytes + 7) / 8 * 8;
  if (corrupt_ || bytes != page->data_bytes || whole > left) {
    corrupt_ = true;
    return nullptr;
  }
  at_ += whole;
  return page;
}

Applied apply_to_page(const RecordReader& reader, const RecordPage& page, std::byte* image) noexcept {
  auto* header = reinterpret_cast<PageHeader*>(image);
  if (header->version >= page.version) return Applied::kAlreadyThere;
  if (header->version + 1 != page.version) return Applied::kGap;
  const std::byte* data = reader.data();
  for (int i = 0; i < page.ranges; ++i) {
    const RecordRange& range = reader.ranges()[i];
    if (range.zero()) {
      std::memset(image + range.offset, 0, range.bytes());
    } else {
      std::memcpy(image + range.offset, data, range.bytes());
      data += range.bytes();
    }
  }
  header->version = page.version;
  return Applied::kChanged;
}

}  // namespace bufmgr
