// ProviderCall: wakes the node's page provider.
#pragma once

#include <atomic>
#include <cstdint>

#include "bufmgr/base/wakeup.hpp"

namespace bufmgr {

class ProviderCall {
 public:
  // `called`: futex word, grows with every call; `sleeps`: the provider sleeps, or is about to.  In the node's arena.
  ProviderCall(std::atomic<uint32_t>* called, std::atomic<uint32_t>* sleeps) : called_(called), sleeps_(sleeps) {}
  // What the caller has set before, and the provider looks at after it has said that it sleeps, is not missed.  Else a
  // missed call costs one slice of sleep.
  void call() const noexcept {
    if (sleeps_->load(std::memory_order_seq_cst) == 0) return;
    called_->fetch_add(1, std::memory_order_release);
    signal_wakeup(*called_);
  }

 private:
  std::atomic<uint32_t>*called_, *sleeps_;
};

}  // namespace bufmgr
