#include "bufmgr/log/redo_ring.hpp"

#include <algorithm>
#include <cstring>

#include "bufmgr/base/wakeup.hpp"
#include "coherence/base/verify.hpp"

namespace bufmgr {

using coherence::Batch;
using coherence::Errc;
using coherence::Memory;
using coherence::PoolAddress;
using coherence::Result;
using coherence::Status;

namespace {

// One READ or WRITE per contiguous part of [position, position + bytes).
template <class Add>
void for_parts(uint64_t position, uint64_t data_bytes, uint32_t bytes, const Add& add) {
  const uint64_t offset = position % data_bytes;
  const auto first = uint32_t(std::min<uint64_t>(bytes, data_bytes - offset));
  add(offset, 0, first);
  if (first < bytes) add(0, first, bytes - first);
}

}  // namespace

Status RedoRing::open(Memory& memory, uint64_t incarnation) {
  RingHeader header{};
  Batch read(at_.node());
  read.read(at_, &header, sizeof header);
  GCL_TRY(memory.run(read));
  if (header.magic == 0) header = {RingHeader::kMagic, data_bytes_, 0, 0};  // a new pool
  if (header.magic != RingHeader::kMagic || header.data_bytes != data_bytes_) return Errc::kCorrupt;
  header.incarnation = incarnation;
  header.tail += data_bytes_;  // log.lap-per-incarnation
  Batch write(at_.node());
  write.write(at_, &header, sizeof header);
  GCL_TRY(memory.run(write));
  shared_->first = header.tail;
  shared_->head.store(header.tail, std::memory_order_relaxed);
  shared_->pushed.store(header.tail, std::memory_order_relaxed);
  shared_->tail.store(header.tail, std::memory_order_relaxed);
  shared_->budget.store(int64_t(allowance()), std::memory_order_release);
  return {};
}

bool RedoRing::try_reserve(uint64_t bytes) noexcept {
  VERIFY(bytes <= allowance());
  int64_t budget = shared_->budget.load(std::memory_order_relaxed);
  do {
    if (budget < int64_t(bytes)) return false;
    // Acquire: pairs with the release in move_tail(), whose readers are done with the bytes that may be overwritten.
  } while (!shared_->budget.compare_exchange_weak(budget, budget - int64_t(bytes), std::memory_order_acquire,
                                                  std::memory_order_relaxed));
  return true;
}

int64_t RedoRing::reserved_now() const noexcept {
  return int64_t(allowance()) - int64_t(used()) - shared_->budget.load(std::memory_order_acquire);
}

uint64_t RedoRing::append(std::span<std::byte> framed, uint64_t reserved) noexcept {
  const uint64_t bytes = framed.size();
  // seq_cst: the session announced itself before (LogGate).
  const uint64_t sequence = shared_->head.fetch_add(bytes, std::memory_order_seq_cst);
  VERIFY(sequence + bytes - tail() <= data_bytes_);
  if (reserved != bytes) shared_->budget.fetch_add(int64_t(reserved) - int64_t(bytes), std::memory_order_relaxed);
  seal_record(framed, sequence);
  for_parts(sequence, data_bytes_, uint32_t(bytes), [&](uint64_t offset, uint32_t from, uint32_t count) {
    std::memcpy(here_ + offset, framed.data() + from, count);
  });
  return sequence;
}

void RedoRing::add_push(Batch& batch, uint64_t from, uint64_t upto) const noexcept {
  const PoolAddress data = at_ + kRingHeaderBytes;
  for_parts(from, data_bytes_, uint32_t(upto - from),
            [&](uint64_t offset, uint32_t, uint32_t count) { batch.write(data + offset, here_ + offset, count); });
}

void RedoRing::pushed_to(uint64_t upto) noexcept {
  uint64_t seen = shared_->pushed.load(std::memory_order_relaxed);
  while (seen < upto && !shared_->pushed.compare_exchange_weak(seen, upto, std::memory_order_seq_cst)) {
  }
}

void RedoRing::move_tail(Memory& memory, uint64_t tail) noexcept {
  const uint64_t before = shared_->tail.load(std::memory_order_relaxed);
  VERIFY(tail >= before);
  if (tail == before) return;
  // In the pool first: a reader must not start in bytes that are being overwritten.
  Batch batch(at_.node());
  batch.write(at_ + offsetof(RingHeader, tail), &tail, sizeof tail);
  if (!memory.run(batch)) return;
  shared_->tail.store(tail, std::memory_order_release);
  shared_->budget.fetch_add(int64_t(tail - before), std::memory_order_release);
  shared_->moved.fetch_add(1, std::memory_order_release);  // pairs with moved()
  signal_wakeup(shared_->moved);
}

void RedoRing::wait_moved(uint32_t seen, uint32_t ms) noexcept { wait_for_wakeup(shared_->moved, seen, ms); }

Result<RingReader> RingReader::open(Memory& memory, PoolAddress ring, uint64_t bytes) {
  RingHeader header{};
  Batch read(ring.node());
  read.read(ring, &header, sizeof header);
  GCL_TRY(memory.run(read));
  if (header.magic == 0) return Errc::kNotFound;
  if (header.magic != RingHeader::kMagic) return Errc::kCorrupt;
  if (header.data_bytes + kRingHeaderBytes > bytes) return Errc::kCorrupt;
  return RingReader(ring + kRingHeaderBytes, header);
}

Status RingReader::read(Memory& memory, uint64_t position, std::byte* to, uint32_t bytes) {
  Batch batch(data_.node());
  for_parts(position, data_bytes_, bytes,
            [&](uint64_t offset, uint32_t at, uint32_t count) { batch.read(data_ + offset, to + at, count); });
  return memory.run(batch);
}

Result<std::span<const std::byte>> RingReader::next(Memory& memory, std::span<std::byte> buffer) {
  RecordFrame frame;
  GCL_TRY(read(memory, position_, reinterpret_cast<std::byte*>(&frame), sizeof frame));
  if (frame.bytes > buffer.size() - sizeof frame) return Errc::kNotFound;
  const auto framed = buffer.first(sizeof frame + frame.bytes);
  GCL_TRY(read(memory, position_, framed.data(), uint32_t(framed.size())));
  auto record = framed_record(framed, position_);
  if (record) position_ += framed.size();
  return record;
}

}  // namespace bufmgr
