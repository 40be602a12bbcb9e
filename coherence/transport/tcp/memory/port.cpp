#include "coherence/transport/tcp/memory/port.hpp"

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"

namespace coherence::tcp {

uint64_t Port::bytes_for(int places) noexcept { return sizeof(Header) + uint64_t(places) * sizeof(PortPlace); }

// What is zero has the meaning that it needs: free places, nothing posted.  So nothing is touched before it is used.
Port::Port(void* memory, int places, WorkerWakeup& worker_wakeup) noexcept
    : header_(static_cast<Header*>(memory)),
      place_(reinterpret_cast<PortPlace*>(static_cast<std::byte*>(memory) + sizeof(Header))),
      places_(places),
      worker_wakeup_(worker_wakeup) {
  VERIFY(places > 0 && places <= kPlacesMax && uintptr_t(memory) % alignof(PortPlace) == 0);
}

PortPlace* Port::take_place() noexcept {
  for (int i = 0; i < places_; i++) {
    uint32_t free = 0;
    if (place_[i].in_use.load(std::memory_order_relaxed) == 0 &&
        place_[i].in_use.compare_exchange_strong(free, 1, std::memory_order_acquire))  // pairs with give_back()
      return &place_[i];
  }
  return nullptr;
}

void Port::give_back(PortPlace& place) noexcept {
  VERIFY(place.posted.load(std::memory_order_relaxed) == 0 && place.done.load(std::memory_order_relaxed) == 0);
  place.in_use.store(0, std::memory_order_release);  // pairs with take_place()
}

void Port::post(PortPlace& place, uint32_t entries) noexcept {
  const auto number = uint32_t(&place - place_);
  place.posted.fetch_or(entries, std::memory_order_seq_cst);  // pairs with take_posted()
  header_->posted[number / 64].fetch_or(uint64_t{1} << number % 64, std::memory_order_seq_cst);
  if (header_->closed.load(std::memory_order_seq_cst) == 0) return worker_wakeup_.signal();
  // What the worker has not taken by now it never will: it takes once behind close().
  for (uint32_t left = place.posted.fetch_and(~entries, std::memory_order_acquire) & entries; left; left &= left - 1)
    done(place, std::countr_zero(left), false);
}

bool Port::any_posted() const noexcept {
  for (const auto& word : header_->posted)
    if (word.load(std::memory_order_seq_cst) != 0) return true;  // pairs with post()
  return false;
}

void Port::done(PortPlace& place, int entry, bool known) noexcept {
  place.entry[entry].known = known;
  place.done.fetch_or(1u << entry, std::memory_order_seq_cst);  // pairs with TcpMemory::poll()
  if (place.sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(place.done, 1);
}

}  // namespace coherence::tcp
