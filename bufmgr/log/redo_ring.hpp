// RedoRing: a node's redo in the pool, where survivors find it.  A ring of records (record.hpp), written by all
// sessions of the node, emptied by write-back.  Records are written to the node's memory, place by place as in the
// pool, and brought to the pool from there (redo_push.hpp).
//
//   first 4 KB: RingHeader          then: data, frame of sequence s at s modulo the data's size, wrapping
//
// log.place-under-latches: A record takes its place under the latches of its pages, so the order of two changes of a
//     page is the order of their sequences.
// log.kept-until-written-back: Bytes at or after the tail are kept.  The tail moves past a record only when all changes
//     of its pages are in the pool, so the records of a page newer than its last completed write-back are there.
// log.lap-per-incarnation: An incarnation begins a lap of its own.  What a former one left in the ring, which may have
//     died, is of an earlier lap for each reader, and is needed no longer (repair.swept-means-written).
// log.reader-stops-at-hole: A reader stops at the hole: the first place that does not hold the sound record (length,
//     CRC-32C, sequence) of that very position.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bufmgr/log/record.hpp"
#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/memory.hpp"

namespace bufmgr {

inline constexpr uint64_t kRingHeaderBytes = 4096;
inline constexpr uint64_t kRingBytesLeast = kRingHeaderBytes + (192 << 10);

// In the pool.
struct RingHeader {
  static constexpr uint64_t kMagic = 0x474e4952'4c434701;
  uint64_t magic;
  uint64_t data_bytes;
  uint64_t tail;         // sequence of the oldest record that may be needed
  uint64_t incarnation;  // of the node that writes it
};

class RedoRing {
 public:
  // In the node's arena.
  struct Shared {
    alignas(64) std::atomic<uint64_t> head;    // sequence of the next record
    alignas(64) std::atomic<int64_t> budget;   // bytes that may still be reserved
    alignas(64) std::atomic<uint64_t> pushed;  // all below is in the pool
    alignas(64) std::atomic<uint64_t> tail;
    uint64_t first;                  // sequence of the incarnation's first record
    std::atomic<uint32_t> emptying;  // one session at a time moves the tail
    std::atomic<uint32_t> moved;     // futex word: grows with the tail
  };
  // `here`: data_bytes_of(bytes) bytes of the node's arena.
  RedoRing(Shared* shared, std::byte* here, coherence::PoolAddress at, uint64_t bytes)
      : shared_(shared), here_(here), at_(at), data_bytes_(data_bytes_of(bytes)) {}
  // Of a ring of so many bytes, its header included.
  static uint64_t data_bytes_of(uint64_t bytes) { return (bytes - kRingHeaderBytes) / 8 * 8; }

  // Takes over the ring from the former incarnation (log.lap-per-incarnation).  Called once, before any session of the
  // node works. kCorrupt: it is not a ring, or not of this size.  kFenced: transport.unknown-cuts-off.
  coherence::Status open(coherence::Memory&, uint64_t incarnation);

  bool try_reserve(uint64_t bytes) noexcept;
  void give_back(uint64_t bytes) noexcept { shared_->budget.fetch_add(int64_t(bytes), std::memory_order_relaxed); }

  // The next record's sequence will be at least this.  seq_cst: see LogGate.
  uint64_t head() const noexcept { return shared_->head.load(std::memory_order_seq_cst); }
  uint64_t tail() const noexcept { return shared_->tail.load(std::memory_order_acquire); }
  uint64_t used() const noexcept {
    const uint64_t from = tail();  // first: the head is at least there, then and later
    return head() - from;
  }
  // seq_cst: see LogGate::begin_push().
  uint64_t pushed() const noexcept { return shared_->pushed.load(std::memory_order_seq_cst); }
  uint64_t first() const noexcept { return shared_->first; }
  uint64_t data_bytes() const noexcept { return data_bytes_; }
  coherence::PoolAddress at() const noexcept { return at_; }
  // Bytes reserved and not yet written or returned; 0 when no session is at work.
  int64_t reserved_now() const noexcept;

  // Seals frame and record and writes them to the node's memory, out of a reservation of `reserved` bytes, which ends;
  // returns the record's sequence.
  uint64_t append(std::span<std::byte> framed, uint64_t reserved) noexcept;

  // Adds what brings those bytes to the pool: two operations at most.  REQUIRES: they are complete, and kept.
  void add_push(coherence::Batch&, uint64_t from, uint64_t upto) const noexcept;
  // All below is in the pool.
  void pushed_to(uint64_t upto) noexcept;

  bool begin_emptying() noexcept { return shared_->emptying.exchange(1, std::memory_order_acquire) == 0; }
  void end_emptying() noexcept { shared_->emptying.store(0, std::memory_order_release); }  // pairs with begin
  // REQUIRES: emptying; log.kept-until-written-back holds for everything below `tail`.  In a pool that is fenced it may
  // stay where it is.
  void move_tail(coherence::Memory&, uint64_t tail) noexcept;
  // Sleeps until the tail moves, at most `ms`.  `seen` is moved() from before the caller found no room.
  uint32_t moved() const noexcept { return shared_->moved.load(std::memory_order_acquire); }
  void wait_moved(uint32_t seen, uint32_t ms) noexcept;

 private:
  uint64_t allowance() const noexcept { return data_bytes_ - data_bytes_ / 8; }  // the rest covers underestimates

  Shared* shared_;
  std::byte* here_;
  coherence::PoolAddress at_;
  uint64_t data_bytes_;
};

// Reads a node's ring from its tail on, from any node.
class RingReader {
 public:
  // kNotFound: no incarnation has opened it yet; kCorrupt: no ring there.  kFenced, here and below:
  // transport.unknown-cuts-off.
  static coherence::Result<RingReader> open(coherence::Memory&, coherence::PoolAddress ring, uint64_t bytes);
  // Reads the next record into `buffer` (kMiniRecordMax suffices); kNotFound at the hole, kIncompatible: the record is
  // of another format.
  coherence::Result<std::span<const std::byte>> next(coherence::Memory&, std::span<std::byte> buffer);
  uint64_t position() const { return position_; }
  // The bytes there, whatever they are: at most kReadMax of them.
  static constexpr uint32_t kReadMax = 64 << 10;
  coherence::Status read(coherence::Memory&, uint64_t position, std::byte* to, uint32_t bytes);
  uint64_t data_bytes() const { return data_bytes_; }
  uint64_t incarnation() const { return incarnation_; }  // that opened the ring

 private:
  RingReader(coherence::PoolAddress data, const RingHeader& header)
      : data_(data), data_bytes_(header.data_bytes), position_(header.tail), incarnation_(header.incarnation) {}

  coherence::PoolAddress data_;
  uint64_t data_bytes_;
  uint64_t position_;
  uint64_t incarnation_;
};

}  // namespace bufmgr
