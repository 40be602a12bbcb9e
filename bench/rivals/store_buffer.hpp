// A thread's store buffer, which makes a sequentially consistent memory one with total store order: a thread that
// stores goes on at once and waits for no invalidation, unless the buffer is full.
//
// rivals.stores-in-order: A thread's stores are performed in its order, each once (checked).  Ownership is fetched
//     ahead for all of them.
// rivals.load-own-store: A load sees its own thread's newest store to that line, if one is still here, else what was
//     performed last: it is stale only by stores in others' buffers.  (Truth checks the second half, as every access.)
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>

#include "bench/paper/network.hpp"
#include "bench/paper/workload.hpp"

namespace paper {

class StoreBuffer {
 public:
  static constexpr size_t kStoresMax = 8;
  using Act = std::function<void(const Access&)>;
  StoreBuffer(int node, Act fetch, Act perform)
      : fetch_(std::move(fetch)), perform_(std::move(perform)), performers_(node) {}

  bool holds(const Access& load) const {
    return std::any_of(stores_.begin(), stores_.end(),
                       [&](const Access& s) { return s.page == load.page && s.line == load.line; });
  }
  void push(const Access& store) {
    wait([&] { return stores_.size() < kStoresMax; });
    stores_.push_back(store);
    performers_.run([this, store, turn = pushed_++] {
      fetch_(store);  // nothing is held meanwhile
      wait([&] { return performed_ == turn; });
      perform_(store);
      if (performed_++ != turn) fail();
      stores_.pop_front();
      wakeup_++;
      sim::scheduler()->wake(&wakeup_, 1 << 20);
    });
  }

 private:
  static constexpr uint64_t kLongNs = 1'000'000'000;
  template <class Condition>
  void wait(Condition until) {
    while (!until()) sim::scheduler()->park(&wakeup_, wakeup_, kLongNs);
  }
  [[noreturn]] static void fail() {
    fprintf(stderr, "a store was performed out of its thread's order\n");
    abort();
  }
  const Act fetch_, perform_;
  Crew performers_;
  std::deque<Access> stores_;
  uint64_t pushed_ = 0, performed_ = 0;
  uint32_t wakeup_ = 0;
};

}  // namespace paper
