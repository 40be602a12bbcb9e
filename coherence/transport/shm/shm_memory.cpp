#include "coherence/transport/shm/shm_memory.hpp"

#include <atomic>

#include "coherence/base/racy_copy.hpp"

namespace coherence {
namespace {

std::atomic_ref<uint64_t> word_at(std::byte* base, PoolAddress at) {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(base + at.offset()));
}

// A word is stored, and loaded, by one instruction that also orders it (transport.seen-in-order,
// transport.write-then-look).
bool is_word(std::byte* there, const Op& op) { return op.bytes == 8 && uintptr_t(there) % 8 == 0; }

void write(std::byte* there, const Op& op) {
  if (!is_word(there, op)) return racy_publish(there, op.local, op.bytes);
  uint64_t value;
  racy_copy(&value, op.local, sizeof value);
  std::atomic_ref(*reinterpret_cast<uint64_t*>(there)).store(value, std::memory_order_release);
}

void read(std::byte* there, const Op& op) {
  if (!is_word(there, op)) return racy_look(op.local, there, op.bytes);
  const uint64_t value = std::atomic_ref(*reinterpret_cast<uint64_t*>(there)).load(std::memory_order_acquire);
  racy_copy(op.local, &value, sizeof value);
}

}  // namespace

void ShmMemory::run(Batch& batch) {
  counters_.add(Counter::kBatches);
  VERIFY(batch.to().value < kMemoryNodesMax);
  std::byte* const base = map_.base(batch.to());
  for (int i = 0; i < batch.size(); i++) {
    Op& op = batch.op(i);
    // Atomics are seq_cst: the node that the word names after a hand-over sees what was written to the pool before it
    // (transport.seen-in-order), and of two processes that each set one word and look at the other, one sees the
    // other's (transport.write-then-look).
    switch (op.verb) {
      case Verb::kRead:
        if (!wanted(op, batch.op(0))) break;
        read(base + op.at.offset(), op);
        counters_.add(Counter::kReads);
        counters_.add(Counter::kBytesRead, op.bytes);
        break;
      case Verb::kWrite:
        write(base + op.at.offset(), op);
        counters_.add(Counter::kWrites);
        counters_.add(Counter::kBytesWritten, op.bytes);
        break;
      case Verb::kCas: {
        uint64_t expected = op.expect;
        word_at(base, op.at).compare_exchange_strong(expected, op.operand, std::memory_order_seq_cst);
        op.old = expected;
        counters_.add(Counter::kCas);
        break;
      }
      case Verb::kFaa:
        op.old = word_at(base, op.at).fetch_add(op.operand, std::memory_order_seq_cst);
        counters_.add(Counter::kFaa);
        break;
      case Verb::kLoad:
        op.old = word_at(base, op.at).load(std::memory_order_seq_cst);
        counters_.add(Counter::kLoads);
        break;
    }
  }
  batch.state.store(BatchState::kDone, std::memory_order_release);  // pairs with Batch::done()
}

void ShmMemory::post(Batch* const* batches, int count) {
  for (int i = 0; i < count; i++) run(*batches[i]);
}

void ShmMemory::poll() {}

}  // namespace coherence
