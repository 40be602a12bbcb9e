#include "coherence/transport/tcp/memory/tcp_memory.hpp"

#include <bit>

#include "coherence/base/os.hpp"
#include "coherence/base/racy_copy.hpp"
#include "coherence/base/verify.hpp"

namespace coherence::tcp {
namespace {

constexpr uint64_t kSliceNs = 100'000;      // tcp.poll-may-sleep
constexpr uint32_t kSleepsUntilLook = 256;  // some 40 ms

bool has_bytes(const Op& op) { return op.verb == Verb::kRead || op.verb == Verb::kWrite; }
bool through_port(const Op& op) { return has_bytes(op) && !op.registered; }
constexpr uint32_t aligned(uint32_t bytes) { return (bytes + 7) / 8 * 8; }
static_assert(kBytesEach >= kPlainBytesMax + kBatchOpsMax * 8);  // any batch fits an empty place

PortPlace& place_in(Port& port) {
  PortPlace* const place = port.take_place();
  VERIFY(place != nullptr);
  return *place;
}

}  // namespace

TcpMemory::TcpMemory(Port& port, Counters& counters) : port_(port), counters_(counters), place_(place_in(port)) {}

TcpMemory::~TcpMemory() {
  while (under_way_ != 0) poll();
  port_.give_back(place_);
}

void TcpMemory::post(Batch* const* batches, int count) {
  uint32_t before = under_way_;
  for (int i = 0; i < count; i++) {
    counters_.add(Counter::kBatches);
    batches[i]->state.store(BatchState::kPosted, std::memory_order_relaxed);
    if (!waiting_.empty() || !put(*batches[i])) waiting_.push_back(batches[i]);
  }
  if (under_way_ != before) port_.post(place_, under_way_ & ~before);
}

// False: there is no room.
bool TcpMemory::put(Batch& batch) noexcept {
  const int place = std::countr_one(under_way_);
  if (place == kEntriesEach) return false;
  PortEntry& entry = place_.entry[place];
  entry.to = batch.to();
  entry.count = uint8_t(batch.size());
  for (int i = 0; i < batch.size(); i++) entry.op[i] = batch.op(i);
  VERIFY(can_travel(entry.ops()));  // tcp.batch-bounded
  const uint32_t bytes_before = bytes_used_;
  if (!put_bytes(entry)) return false;
  if (bytes_used_ != bytes_before) with_bytes_ |= 1u << place;
  under_way_ |= 1u << place;
  batch_[place] = &batch;
  return true;
}

bool TcpMemory::put_bytes(PortEntry& entry) noexcept {
  uint32_t bytes = 0;
  for (const Op& op : entry.ops())
    if (through_port(op)) bytes += aligned(op.bytes);
  if (bytes > kBytesEach - bytes_used_) return false;
  for (Op& op : entry.ops()) {
    if (!through_port(op)) continue;
    std::byte* const there = place_.bytes + bytes_used_;
    if (op.verb == Verb::kWrite) racy_copy(there, op.local, op.bytes);
    op.local = there;
    bytes_used_ += aligned(op.bytes);
  }
  return true;
}

void TcpMemory::poll() {
  if (under_way_ == 0) return;
  if (place_.done.load(std::memory_order_relaxed) == 0) {
    sleep();
    if (++sleeps_ % kSleepsUntilLook == 0) look_for_worker();
  }
  uint32_t done = place_.done.exchange(0, std::memory_order_acquire);  // pairs with Port::done()
  if (done == 0) return;
  for (; done != 0; done &= done - 1) take(std::countr_zero(done));
  if (with_bytes_ == 0) bytes_used_ = 0;
  put_waiting();
}

// Until one is done, for a slice.
void TcpMemory::sleep() noexcept {
  place_.sleeping.store(1, std::memory_order_seq_cst);  // pairs with Port::done()
  if (place_.done.load(std::memory_order_seq_cst) == 0) futex_wait_ns(place_.done, 0, kSliceNs);
  place_.sleeping.store(0, std::memory_order_relaxed);
}

// worker.gone-ends-waits
void TcpMemory::look_for_worker() noexcept {
  if (!port_.worker_wakeup().worker_is_gone()) return;
  port_.close();
  for (uint32_t done = place_.done.exchange(0, std::memory_order_acquire); done; done &= done - 1)
    take(std::countr_zero(done));
  place_.posted.store(0, std::memory_order_relaxed);
  for (; under_way_ != 0; under_way_ &= under_way_ - 1)
    batch_[std::countr_zero(under_way_)]->state.store(BatchState::kUnknown, std::memory_order_release);
  for (Batch* batch : waiting_) batch->state.store(BatchState::kUnknown, std::memory_order_release);
  waiting_.clear();
  with_bytes_ = bytes_used_ = 0;
}

void TcpMemory::put_waiting() noexcept {
  const uint32_t before = under_way_;
  size_t n = 0;
  while (n < waiting_.size() && put(*waiting_[n])) n++;
  if (n == 0) return;
  waiting_.erase(waiting_.begin(), waiting_.begin() + ptrdiff_t(n));
  port_.post(place_, under_way_ & ~before);
}

void TcpMemory::take(int place) noexcept {
  const PortEntry& entry = place_.entry[place];
  Batch& batch = *batch_[place];
  under_way_ &= ~(1u << place);
  with_bytes_ &= ~(1u << place);
  if (!entry.known) return batch.state.store(BatchState::kUnknown, std::memory_order_release);  // pairs with done()
  for (int i = 0; i < batch.size(); i++) {
    Op& op = batch.op(i);
    op.old = entry.op[i].old;
    if (op.verb == Verb::kRead && through_port(op) && wanted(op, batch.op(0)))
      racy_copy(op.local, entry.op[i].local, op.bytes);
  }
  count(batch);
  batch.state.store(BatchState::kDone, std::memory_order_release);  // pairs with Batch::done()
}

void TcpMemory::count(const Batch& batch) noexcept {
  for (int i = 0; i < batch.size(); i++) {
    const Op& op = batch.op(i);
    switch (op.verb) {
      case Verb::kRead:
        if (!wanted(op, batch.op(0))) break;
        counters_.add(Counter::kReads);
        counters_.add(Counter::kBytesRead, op.bytes);
        break;
      case Verb::kWrite:
        counters_.add(Counter::kWrites);
        counters_.add(Counter::kBytesWritten, op.bytes);
        break;
      case Verb::kCas:
        counters_.add(Counter::kCas);
        break;
      case Verb::kFaa:
        counters_.add(Counter::kFaa);
        break;
      case Verb::kLoad:
        counters_.add(Counter::kLoads);
        break;
    }
  }
}

}  // namespace coherence::tcp
