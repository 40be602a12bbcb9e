// A thread that can be stopped wherever it is, as the system's scheduler does, for races between any two of its steps.
//
//   gcl_test::Pausable reader([&] { while (!stop) look(); });
//   reader.pause();      // returns once it stands still
//   ...                  // what happens meanwhile.  It may stand under a guard: nothing that waits for one
//   reader.resume();
//
// One at a time in a process: the signal is the process's.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>
#include <utility>

namespace gcl_test {

class Pausable {
 public:
  template <class Body>
  explicit Pausable(Body body) {
    struct sigaction action = {};
    action.sa_handler = &stand_still;
    EXPECT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    thread_ = std::thread(std::move(body));
  }
  ~Pausable() { join(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  // REQUIRES: the body still runs, and goes on doing so until resume().
  void pause() {
    wanted_.store(true);
    EXPECT_EQ(pthread_kill(thread_.native_handle(), SIGUSR1), 0);
    while (!stands_.load()) std::this_thread::yield();
  }
  void resume() {
    wanted_.store(false);
    while (stands_.load()) std::this_thread::yield();
  }

 private:
  static void stand_still(int) {
    stands_.store(true);
    while (wanted_.load()) sched_yield();
    stands_.store(false);
  }
  static inline std::atomic<bool> wanted_{false}, stands_{false};
  std::thread thread_;
};

}  // namespace gcl_test
