// The far transport with threads: messages and batches arrive by a thread of the network's, some time after they were
// sent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/shm/shm_transport.hpp"
#include "tests/support/far_messenger.hpp"

namespace conformance {

class ThreadedNetwork final : public gcl_test::Network {
 public:
  ThreadedNetwork() : thread_([this] { run(); }) {}
  ~ThreadedNetwork() override {
    {
      std::lock_guard hold(mutex_);
      over_ = true;
    }
    more_.notify_one();
    thread_.join();
  }
  void carry(std::function<void()> arrival) override {
    {
      std::lock_guard hold(mutex_);
      const auto way = std::chrono::microseconds(random_() % 300);
      under_way_.push({Clock::now() + way, ++sent_, std::make_shared<std::function<void()>>(std::move(arrival))});
    }
    more_.notify_one();
  }
  void wait() override { std::this_thread::yield(); }
  std::optional<int> breaks_after(int) override { return std::nullopt; }
  bool one_in(uint32_t n) override {
    std::lock_guard hold(mutex_);
    return random_() % n == 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct UnderWay {
    Clock::time_point at;
    uint64_t number;
    std::shared_ptr<std::function<void()>> arrival;
    bool operator<(const UnderWay& other) const { return at != other.at ? at > other.at : number > other.number; }
  };
  // Until all has arrived.
  void run() {
    std::unique_lock hold(mutex_);
    for (;;) {
      if (under_way_.empty()) {
        if (over_) return;
        more_.wait(hold);
      } else if (const auto at = under_way_.top().at; Clock::now() < at) {
        more_.wait_until(hold, at);
      } else {
        const auto arrival = under_way_.top().arrival;
        under_way_.pop();
        hold.unlock();
        (*arrival)();
        hold.lock();
      }
    }
  }
  std::mutex mutex_;
  std::condition_variable more_;
  std::priority_queue<UnderWay> under_way_;
  std::minstd_rand random_;
  uint64_t sent_ = 0;
  bool over_ = false;
  std::thread thread_;
};

class ThreadedTransport final : public coherence::ShmTransport {
 public:
  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts& node, coherence::Counters& counters) override {
    return std::make_unique<gcl_test::FarMemory>(
        std::make_unique<coherence::ShmMemory>(coherence::MappedPool::of(node.pool), counters), *network_);
  }
  std::unique_ptr<coherence::Messenger> open_messenger(coherence::NodeParts& node,
                                                       coherence::Counters& counters) override {
    return std::make_unique<gcl_test::FarMessenger>(node, counters, network_);
  }

 private:
  // Outlives what is on its way: its thread ends here.
  const std::shared_ptr<ThreadedNetwork> network_ = std::make_shared<ThreadedNetwork>();
};

}  // namespace conformance
