// What a hit writes to memory that processes share: found by the memory management, not by a clock.  The arena is made
// read-only; a store into it is noted, and let through.  (ThreadSanitizer's validate() is a store: README of
// coherence.)
#ifndef __SANITIZE_THREAD__
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/support/cluster_fixture.hpp"

namespace bufmgr {
namespace {

constexpr uintptr_t kOsPage = 4096;

// Where stores went, once per 4 KB of memory; from the signal handler.
uintptr_t stores[64];
int store_count = 0;

void note_store(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  if (store_count == 64 || mprotect(reinterpret_cast<void*>(at & ~(kOsPage - 1)), kOsPage, PROT_READ | PROT_WRITE) != 0)
    _exit(3);
  stores[store_count++] = at;
}

class HitWrites : public ::testing::Test {
 protected:
  HitWrites() : cluster_({.nodes = 1, .frames = 64, .workers = false}), session_(cluster_.session(0)) {
    page_ = *pool().allocate(*session_, 1);
    (void)pool().fix_exclusive(*session_, page_);
    (void)pool().peek(*session_, page_);
    find_arena();
  }
  BufferPool& pool() { return cluster_.pool(0); }
  coherence::Line& line() { return *pool().find(page_); }

  // The mapping that holds the lines, frames and tables of the node.
  void find_arena() {
    FILE* maps = fopen("/proc/self/maps", "r");
    ASSERT_NE(maps, nullptr);
    const auto wanted = reinterpret_cast<uintptr_t>(&line());
    char text[512];
    while (fgets(text, sizeof text, maps) != nullptr) {
      unsigned long from, to;
      if (sscanf(text, "%lx-%lx", &from, &to) == 2 && from <= wanted && wanted < to) begin_ = from, end_ = to;
    }
    fclose(maps);
    ASSERT_LT(begin_, end_);
  }
  // Runs `act` over a read-only arena.  Afterwards `written_` has the 64-byte lines that changed, and stores[] the
  // first store into each 4 KB that was stored to.
  template <class Act>
  void watch(const Act& act) {
    store_count = 0;
    const std::vector<char> before(reinterpret_cast<char*>(begin_), reinterpret_cast<char*>(end_));
    struct sigaction noting {
    }, old;
    noting.sa_sigaction = note_store;
    noting.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &noting, &old);
    mprotect(reinterpret_cast<void*>(begin_), end_ - begin_, PROT_READ);
    act();
    mprotect(reinterpret_cast<void*>(begin_), end_ - begin_, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &old, nullptr);
    written_.clear();
    for (uintptr_t at = begin_; at < end_; at += 64)
      if (memcmp(reinterpret_cast<char*>(at), &before[at - begin_], 64) != 0) written_.push_back(at);
  }
  // The session's own counters: one writer, a cache line of their own.
  bool is_own(uintptr_t at) {
    const auto counts = reinterpret_cast<uintptr_t>(&pool().counts(session_->id()));
    return at >= counts && at < counts + sizeof(BufferCounts);
  }
  bool stored_elsewhere(const void* but, size_t bytes) {
    const auto from = reinterpret_cast<uintptr_t>(but);
    return std::any_of(stores, stores + store_count,
                       [&](uintptr_t at) { return !is_own(at) && (at < from || at >= from + bytes); });
  }

  gcl_test::Cluster cluster_;
  std::unique_ptr<Session> session_;
  PageId page_;
  uintptr_t begin_ = 0, end_ = 0;
  std::vector<uintptr_t> written_;
};

TEST_F(HitWrites, AnOptimisticHitWritesNothingButItsOwnCounters) {
  watch([&] {
    for (int i = 0; i < 100; ++i) {
      const OptimisticGuard look = pool().peek(*session_, page_);
      if (!look || look.get<uint64_t>(64) != 0 || !look.validate()) _exit(4);
    }
  });
  EXPECT_FALSE(stored_elsewhere(nullptr, 0));
  for (const uintptr_t at : written_) EXPECT_TRUE(is_own(at)) << at - begin_;
}

TEST_F(HitWrites, ASharedHitWritesTheLatchOfItsLineOnly) {
  SharedGuard guard;
  watch([&] { guard = pool().fix_shared(*session_, page_).take(); });
  EXPECT_FALSE(stored_elsewhere(&line(), 8));
  EXPECT_GT(store_count, 0);  // the net catches something
  const auto latch = reinterpret_cast<uintptr_t>(&line());
  EXPECT_EQ(std::count(written_.begin(), written_.end(), latch), 1);
  for (const uintptr_t at : written_) EXPECT_TRUE(at == latch || is_own(at)) << at - begin_;
  watch([&] { guard.release(); });
  EXPECT_FALSE(stored_elsewhere(&line(), 8));
  for (const uintptr_t at : written_) EXPECT_EQ(at, latch);
}

TEST_F(HitWrites, AnExclusiveHitWritesTheLatchOfItsLineOnly) {
  const auto latch = reinterpret_cast<uintptr_t>(&line());
  watch([&] { (void)pool().fix_exclusive(*session_, page_); });
  EXPECT_FALSE(stored_elsewhere(&line(), 8));
  for (const uintptr_t at : written_) EXPECT_TRUE(at == latch || is_own(at)) << at - begin_;
}

}  // namespace
}  // namespace bufmgr
#endif
