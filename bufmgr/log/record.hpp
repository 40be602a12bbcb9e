// The redo record of one mini-transaction: physical, and applied by version.  The node's ring in the pool has one of
// each, and so has its log; the two are the same but for copies (log.ring-has-bytes).  Bytes have no alignment; numbers
// are little endian; varint and packed: packing.hpp.
//
//   RecordHeader | one part per page          in the ring, a RecordFrame before it: a log has frames of its own
//
//   A log's record has the header in brief: its first two bytes, with kBrief as the format and the sequence's low 6
//   bits, and the rest of the sequence as a varint.
//
//   page part    page number * 2 + (1: the memory node follows)      varint
//                [memory node, if it is not 0]                       1 byte
//                version of the page after the change                varint
//                number of steps                                     varint
//                steps, copies first
//   step         kind 2 bits | adjacent 1 bit | length - 1 5 bits    1 byte
//                [length - 32, if those 5 bits are 31]               varint
//                [offset, unless adjacent: it begins where the step before it ended]  varint
//                kBytes: the bytes; kPacked: the bytes, packed; kZero: nothing; kCopy: offset of the source, varint
//
// log.sequence-is-position: `sequence` is the position of the record's frame in the node's ring, in bytes since the
//     pool was created, laps included.  It names the record, orders it among those of its node, and never repeats, so
//     that a record of an earlier lap of the ring is not taken for it.
// log.next-version-only: Redo applies a record to a page only if the page's version is exactly one less than the
//     record's (an older change is there already; a newer one means that a record is missing).  So over several nodes
//     the versions alone give the order.
// log.copies-come-first: A page's steps are applied in order, copies before all others.  A copy reads bytes as they
//     were before the mini-transaction, or as an earlier copy of the record left them.
// log.ring-has-bytes: A ring's record has no copy: what the log's record copies, the ring's has as bytes.  All else is
//     the same: pages, versions, sequence, bytes and zeros.  A node may die while it writes a page back, and no version
//     says so: the image in the pool is torn then, any of its changed bytes new, the version old
//     (repair.version-written-last).  Each
//     byte that the write-back touches is written by one of the ring's records, and the last of these writes what it
//     ended as; so they make the page out of any such image.  A copy would read what may be newer than its record.  So
//     a record with copies is applied to images only that are whole at some version.
// log.format-per-record: Each record says its own format, in its first four bits.  So a log may begin with records of
//     one format and go on with another's: the library of a node is exchanged in the middle of its log.
// log.reader-of-before: Besides today's formats the one is read that the release before wrote, and none that is older:
//     nothing that a stop of all primaries has saved is read out of a log.  Its reader is a file of its own
//     (record_v3.hpp), which the second release behind the last one that wrote the format has no more.
// log.unknown-format-refused: All formats have this frame.  A sound record of a format that is not read is refused
//     (kIncompatible); it is no hole.  In a ring, all have the sequence where RecordHeader has it: what an earlier lap
//     has left is a hole, whatever its format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bufmgr/base/page.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace bufmgr {

struct RecordHeader {
  static constexpr uint32_t kFormat = 4, kBrief = 5;  // a ring's record; a log's
  static constexpr uint32_t kOldest = 3;              // that is read; the newest is a log's
  static constexpr uint64_t kSequenceMax = (uint64_t{1} << 54) - 1;
  static constexpr uint32_t kBriefBytes = 2, kBriefBits = 6;  // before the varint; of the sequence in these
  uint64_t format : 4;
  uint64_t node : 6;
  uint64_t sequence : 54;
};
static_assert(sizeof(RecordHeader) == 8 && coherence::kNodesMax <= 64);

struct RecordFrame {
  uint32_t checksum;  // CRC-32C of all that follows
  uint32_t bytes;     // of the record
};
static_assert(sizeof(RecordFrame) == 8);

struct RecordPage {
  PageId page;
  uint64_t version;  // of the page after this change
  uint32_t steps;
};

struct RecordStep {
  enum Kind : uint8_t { kBytes, kPacked, kZero, kCopy };
  // Of its first byte.
  static constexpr uint32_t kKindMask = 3, kAdjacent = 4, kLengthShift = 3, kLongLength = 31;
  Kind kind;
  uint16_t offset, bytes;           // of the page, what is changed
  uint16_t source;                  // kCopy
  std::span<const std::byte> data;  // kBytes, kPacked: as they lie in the record
  uint32_t end() const { return uint32_t{offset} + bytes; }
};

// Fills in what is known last: sequence and checksum.
void seal_record(std::span<std::byte> framed, uint64_t sequence) noexcept;

// The record as a log has it: in place, where the frame and the header were.
std::span<std::byte> record_for_log(std::span<std::byte> framed, uint64_t sequence) noexcept;

// The record, if `bytes` begins with its frame, whole and sound, and that sequence (kNotFound), and it is of a ring's
// format that is read (kIncompatible).
coherence::Result<std::span<const std::byte>> framed_record(std::span<const std::byte> bytes,
                                                            uint64_t sequence) noexcept;

// Whether these bytes can be read as a record: kCorrupt, there are too few; kIncompatible, it is of another format.
coherence::Status check_format(std::span<const std::byte> record) noexcept;
coherence::Status check_format(std::span<const std::byte> record, coherence::Problem*) noexcept;
// kIncompatible; the problem says of which format the record is, which are read, and what helps.
coherence::Errc refuse_format(std::span<const std::byte> record, coherence::Problem*) noexcept;

// Walks a record that came whole out of a ring or a log; of other bytes it reads no more than there are.
//
//   RecordReader reader(record);
//   while (const RecordPage* page = reader.next_page())
//     while (const RecordStep* step = reader.next_step()) ...
//   if (reader.corrupt()) ...
//
// Plain data: a copy of a reader goes on from where that one is.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> record) noexcept;
  const RecordHeader& header() const noexcept { return header_; }
  // The next page, whether or not all steps of the last one were read; nullptr at the end.
  const RecordPage* next_page() noexcept;
  // The next step of that page, or nullptr.
  const RecordStep* next_step() noexcept;
  // What was read last makes no sense; the walk has ended.
  bool corrupt() const noexcept { return corrupt_; }

 private:
  bool read_page() noexcept;
  bool read_step() noexcept;
  bool take(uint64_t* number) noexcept;
  bool take_offset(uint16_t* offset) noexcept;

  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  RecordHeader header_ = {};
  RecordPage page_{};
  RecordStep step_{};
  uint32_t left_ = 0;  // steps of the page that were not read yet
  bool corrupt_ = false;
};

}  // namespace bufmgr
