// MiniTransaction: the only way to change pages.  Its pages change together; the byte ranges it writes are at once the
// dirty ranges (what write-back sends) and the redo (physical, and applied by version).
//
//   MiniTransaction change(pool, session);
//   GCL_TRY(change.reserve(512));                    // log.reserve-before-latch
//   auto page = pool.fix_exclusive(session, id);
//   if (!page) return page.error();
//   change.join(*page);
//   change.write(*page, offset, &row, sizeof row);   // bytes change now; no other session sees them yet
//   change.commit();                                 // versions + 1, record to ring and log, then guards may end
//
// bufmgr.only-commit-after-write: After the first write() only commit() may follow, because there is no undo.  So a
//     session decides first, then changes.  Waiting, and so kInterrupted, ends with the last fix_.
// bufmgr.commit-under-guards: commit() runs while all its guards are still held, and never fails.
// bufmgr.whole-record-first: A mini-transaction's whole record is in the ring before any of its pages can leave.  The
//     ring's record has the copies as bytes (log.ring-has-bytes): a reservation counts them as such.
// bufmgr.unwritten-may-end: A mini-transaction that ends without commit() has written nothing (VERIFY), and returns its
//     reservation.
// bufmgr.redo-reads-no-hints: What is logged relative to bytes of the page (update(), write_like(), move()) is relative
//     to bytes where no hint is ever stored: a replayed page may lack hints (log.hints-without-redo).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bufmgr/guards.hpp"
#include "bufmgr/log/record_writer.hpp"
#include "coherence/base/result.hpp"

namespace bufmgr {

class BufferPool;
class Session;

inline constexpr int kMiniPagesMax = 8;
inline constexpr int kMiniRangesMax = 64;  // adjacent and overlapping ranges are merged
inline constexpr int kMiniCopiesMax = 12;  // further ones are logged as bytes
// Fewer bytes are not logged as a copy, which takes seven and splits the range it lies in.
inline constexpr uint32_t kMiniCopyMin = 16;
inline constexpr uint32_t kMiniRecordMax = 8 * 8448;  // bytes: 8 whole pages with headers

class MiniTransaction {
 public:
  MiniTransaction(BufferPool& pool, Session& session) : pool_(pool), session_(session) {}
  ~MiniTransaction();
  MiniTransaction(const MiniTransaction&) = delete;
  MiniTransaction& operator=(const MiniTransaction&) = delete;

  // Reserves ring space for a record of at most `bytes` payload (ranges and copies; headers are added).  May wait for
  // write-back; kInterrupted or kFenced if it cannot.  REQUIRES: the session holds no guard.
  coherence::Status reserve(uint32_t bytes);

  // Makes `page` part of the change.  REQUIRES: the guard outlives commit().
  void join(ExclusiveGuard& page);

  // Copies `bytes` to the page at `offset`.  REQUIRES: joined; the range lies in the page.
  void write(ExclusiveGuard& page, uint32_t offset, const void* from, uint32_t bytes);
  void zero(ExclusiveGuard& page, uint32_t offset, uint32_t bytes);
  // As write(), but what is so already, at either end, is not logged (bufmgr.redo-reads-no-hints).
  void update(ExclusiveGuard& page, uint32_t offset, const void* from, uint32_t bytes);
  // As write(), of bytes that begin or end as the `like_bytes` bytes at `like` of the page: the log has these as a copy
  // (bufmgr.redo-reads-no-hints).  REQUIRES: the two do not overlap.
  void write_like(ExclusiveGuard& page, uint32_t offset, const void* from, uint32_t bytes, uint32_t like,
                  uint32_t like_bytes);
  // Moves bytes within the page (memmove); the log has it as a copy (bufmgr.redo-reads-no-hints).
  void move(ExclusiveGuard& page, uint32_t to, uint32_t from, uint32_t bytes);
  template <class T>
  void set(ExclusiveGuard& page, uint32_t offset, const T& value) {
    write(page, offset, &value, sizeof value);
  }
  // For callers that edit a larger part in place (compaction): the bytes may be changed directly, all of the range
  // counts as written.
  std::byte* edit(ExclusiveGuard& page, uint32_t offset, uint32_t bytes);
  // Gives a fresh page its header and zeroes the rest, keeping its version.
  void format(ExclusiveGuard& page, PageType type, uint32_t relation, uint16_t special_bytes = 0);

  void commit();

  // Bytes of a record besides those of pages, at most.
  static constexpr uint32_t kRecordShapeMax = sizeof(RecordFrame) + sizeof(RecordHeader) +
                                              kMiniPagesMax * kRecordPageMax +
                                              (kMiniRangesMax + kMiniCopiesMax) * kRecordStepMax + kPackingSlack;

 private:
  struct Joined {
    coherence::Line* line;
    std::byte* bytes;
    PageId id;
    uint64_t dirty[2];  // one bit per 64 bytes, as in the line
  };
  struct Range {
    uint8_t page;  // index of joined_
    bool zero;     // becomes zero: its bytes are not logged
    uint16_t offset, bytes;
    uint32_t end() const { return uint32_t{offset} + bytes; }
    bool touches(uint32_t from, uint32_t end_of) const { return from < end() && offset < end_of; }
  };
  struct Copied {
    uint8_t page;
    uint16_t to, from, bytes;
  };
  int joined(const ExclusiveGuard& page) const;
  std::byte* note(const ExclusiveGuard& page, uint32_t offset, uint32_t bytes, bool zero);
  bool absorb(const Range& fresh);
  bool note_copy(const ExclusiveGuard& page, uint32_t to, uint32_t from, uint32_t bytes);
  void make_room();
  void spell_out_copies();
  void write_whole_if_shorter(uint8_t page);
  void end_reservation(uint64_t bytes);
  uint32_t record_bound() const;
  std::span<std::byte> build_record(std::byte* to) const;
  BufferPool& pool_;
  Session& session_;
  uint64_t reserved_ = 0;  // bytes of the ring
  uint8_t pages_ = 0;
  uint8_t copies_ = 0;
  uint16_t ranges_ = 0;
  Joined joined_[kMiniPagesMax];
  Range range_[kMiniRangesMax + kMiniCopiesMax];  // the ring's record has copies as ranges
  Copied copy_[kMiniCopiesMax];
};

}  // namespace bufmgr
