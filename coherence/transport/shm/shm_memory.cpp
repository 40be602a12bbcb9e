#include "coherence/transport/shm/shm_memory.hpp"

#include <atomic>

#include "coherence/base/racy_copy.hpp"

namespace coherence {
namespace {

std::atomic_ref<uint64_t> word_at(std::byte* base, PoolAddress at) {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(base + at.offset()));
}

bool wanted(const Op& op, const Op& first) {
  switch (op.only_if) {
    case OnlyIf::kAlways:
      return true;
    case OnlyIf::kCasSucceeded:
      return first.old == first.expect;
    case OnlyIf::kNoHolder:
      return first.old >> 58 == 0;
  }
  return true;
}

}  // namespace

void ShmMemory::run(Batch& batch) {
  counters_.add(Counter::kBatches);
  VERIFY(batch.to().value < kMemoryNodesMax);
  std::byte* const base = map_.base(batch.to());
  for (int i = 0; i < batch.size(); i++) {
    Op& op = batch.op(i);
    // Atomics are acq_rel: what was written to the pool before a hand-over is seen by whoever the word then names.
    switch (op.verb) {
      case Verb::kRead:
        if (!wanted(op, batch.op(0))) break;
        racy_copy(op.local, base + op.at.offset(), op.bytes);
        counters_.add(Counter::kReads);
        counters_.add(Counter::kBytesRead, op.bytes);
        break;
      case Verb::kWrite:
        racy_copy(base + op.at.offset(), op.local, op.bytes);
        counters_.add(Counter::kWrites);
        counters_.add(Counter::kBytesWritten, op.bytes);
        break;
      case Verb::kCas: {
        uint64_t expected = op.expect;
        word_at(base, op.at)
            .compare_exchange_strong(expected, op.operand, std::memory_order_acq_rel, std::memory_order_acquire);
        op.old = expected;
        counters_.add(Counter::kCas);
        break;
      }
      case Verb::kFaa:
        op.old = word_at(base, op.at).fetch_add(op.operand, std::memory_order_acq_rel);
        counters_.add(Counter::kFaa);
        break;
      case Verb::kLoad:
        op.old = word_at(base, op.at).load(std::memory_order_acquire);
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
