// The redo record of one mini-transaction: physical, absolute, idempotent.  The same bytes go to the node's ring in the
// pool and to its log.
//
//   RecordHeader | per page: RecordPage, its RecordRange[], their bytes, padding to 8 | next page ...
//
// log.eight-byte-records: A record is a multiple of 8 bytes long; little endian.
// log.sequence-is-position: `sequence` is the record's position in the node's redo stream: the byte offset since the
//     pool was created.  It names the record, orders it among those of its node, and never repeats, so that a record of
//     an earlier lap of the ring is not taken for it.
// log.next-version-only: Redo applies a record to a page only if the page's version is exactly one less than the
//     record's (an older change is there already; a newer one means that a record is missing).  So over several nodes
//     the versions alone give the order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bufmgr/base/page.hpp"
#include "coherence/base/result.hpp"

namespace bufmgr {

struct RecordHeader {
  static constexpr uint32_t kMagic = 0x4f444552;  // "REDO"
  uint32_t magic;
  uint32_t bytes;  // of the whole record
  uint64_t sequence;
  uint32_t checksum;  // CRC-32C of the record with this field 0
  uint8_t node;
  uint8_t pages;
  uint16_t reserved;
};
static_assert(sizeof(RecordHeader) == 24);

struct RecordPage {
  uint64_t page;
  uint64_t version;  // of the page after this change
  uint16_t ranges;
  uint16_t reserved;
  uint32_t data_bytes;  // of all ranges that carry bytes
};
static_assert(sizeof(RecordPage) == 24);

struct RecordRange {
  static constexpr uint16_t kZero = 0x8000;  // flag in `length`: the range becomes zero, no bytes follow
  uint16_t offset;
  uint16_t length;
  bool zero() const { return length & kZero; }
  uint32_t bytes() const { return length & ~kZero; }
};

uint32_t crc32c(uint32_t seed, const void* bytes, size_t count) noexcept;

// Fills in what is known last, sequence and checksum.
void seal_record(std::span<std::byte> record, uint64_t sequence) noexcept;

// Whether `bytes` begins with a whole, sound record of that sequence.
bool sound_record(std::span<const std::byte> bytes, uint64_t sequence) noexcept;

// Walks the pages of a sound record.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> record) : record_(record), at_(sizeof(RecordHeader)) {}
  const RecordHeader& header() const { return *reinterpret_cast<const RecordHeader*>(record_.data()); }
  // The next page, or nullptr at the end; kCorrupt shapes end the walk and make corrupt() true.
  const RecordPage* next() noexcept;
  // Of the page next() returned last.
  const RecordRange* ranges() const noexcept { return ranges_; }
  const std::byte* data() const noexcept { return data_; }
  bool corrupt() const noexcept { return corrupt_; }

 private:
  std::span<const std::byte> record_;
  size_t at_;
  const RecordRange* ranges_ = nullptr;
  const std::byte* data_ = nullptr;
  bool corrupt_ = false;
};

enum class Applied : uint8_t { kChanged, kAlreadyThere, kGap };

// Applies the page that reader.next() returned last to `image` (kPageSize bytes).
Applied apply_to_page(const RecordReader& reader, const RecordPage& page, std::byte* image) noexcept;

}  // namespace bufmgr
