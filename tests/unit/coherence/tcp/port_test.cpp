// A session's batches through the port: what a worker beside it makes of them arrives, whatever the order, however many
// there are, and though the worker is gone.
#include "coherence/transport/tcp/memory/port.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "coherence/base/os.hpp"
#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "region.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/longer.hpp"
#include "tests/support/random_batch.hpp"

namespace coherence::tcp {
namespace {

constexpr uint64_t kPortRegion = 256 << 10;

// A port, and what a worker does with it.
struct PortRig {
  static constexpr int kPlaces = 3;
  const uint64_t kBytes = WorkerWakeup::kBytes + Port::bytes_for(kPlaces);
  PortRig() {
    memory_ = static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    worker_wakeup = WorkerWakeup::make(memory_, &problem).take();
    port = std::make_unique<Port>(memory_ + WorkerWakeup::kBytes, kPlaces, *worker_wakeup);
  }
  ~PortRig() { munmap(memory_, kBytes); }
  PortRig(const PortRig&) = delete;

  // Takes what is posted, into `taken`.
  bool take() {
    return port->take_posted([&](PortPlace& place, uint32_t entries) {
      for (; entries != 0; entries &= entries - 1) {
        PortEntry& entry = place.entry[std::countr_zero(entries)];
        entry.place = &place;
        taken.push_back(&entry);
      }
    });
  }
  // Carries one of them out, as a memory node does.
  void carry_out(size_t i) {
    PortEntry& entry = *std::exchange(taken[i], taken.back());
    taken.pop_back();
    Batch batch(entry.to);
    for (const Op& op : entry.ops()) {
      if (op.verb == Verb::kRead) batch.read(op.at, op.local, op.bytes, op.only_if);
      if (op.verb == Verb::kWrite) batch.write(op.at, op.local, op.bytes);
      if (op.verb == Verb::kCas) batch.cas(op.at, op.expect, op.operand);
      if (op.verb == Verb::kFaa) batch.faa(op.at, op.operand);
      if (op.verb == Verb::kLoad) batch.load(op.at);
    }
    shm.post(batch);
    for (int n = 0; n < batch.size(); n++) entry.op[n].old = batch.op(n).old;
    done(entry, true);
  }
  void done(PortEntry& entry, bool known) { port->done(*entry.place, int(&entry - entry.place->entry), known); }
  bool signaled() const {
    pollfd look{worker_wakeup->fd(), POLLIN, 0};
    return ::poll(&look, 1, 0) == 1;
  }
  bool falls_asleep() {
    return worker_wakeup->falls_asleep([&] { return port->any_posted(); });
  }

  Problem problem;
  std::unique_ptr<WorkerWakeup> worker_wakeup;
  std::unique_ptr<Port> port;
  std::vector<PortEntry*> taken;
  Region region{kPortRegion};
  Counters counters{}, worker_counters{};
  ShmMemory shm{region, worker_counters};

 private:
  std::byte* memory_;
};

class TcpPort : public testing::Test, protected PortRig {};

TEST_F(TcpPort, APlaceIsOneSessions) {
  std::vector<std::unique_ptr<TcpMemory>> sessions;
  for (int i = 0; i < kPlaces; i++) sessions.push_back(std::make_unique<TcpMemory>(*port, counters));
  EXPECT_EQ(port->take_place(), nullptr);
  sessions.erase(sessions.begin() + 1);
  PortPlace* const free = port->take_place();
  ASSERT_NE(free, nullptr);
  EXPECT_EQ(port->take_place(), nullptr);
  port->give_back(*free);
}

// Also batches that have no room, of which there are more than entries: post() takes all.
TEST_F(TcpPort, BatchesEndInAnyOrderAndBringWhatTheyRead) {
  Region region_without(kPortRegion);
  Counters counted{};
  ShmMemory without(region_without, counted);
  TcpMemory memory(*port, counters);
  std::mt19937_64 random(gcl_test::seed(3));
  for (int round = 0; round < gcl_test::by_one_thread(60); round++) {
    // Each of them has a part of the region to itself, so that their order is no matter.
    constexpr int kBatches = 2 * kEntriesEach;
    const uint32_t bytes_max = round % 4 == 0 ? 1500 : 40;
    std::vector<std::unique_ptr<Batch>> batches, theirs;
    std::vector<std::byte> mine(kBatches * kBatchOpsMax * bytes_max), other;
    for (size_t i = 0; i < mine.size(); i += 97) mine[i] = std::byte(random());
    other = mine;
    std::vector<Batch*> all;
    auto add = [&](std::vector<std::unique_ptr<Batch>>& to, std::byte* bytes, uint64_t seed, int part) {
      std::mt19937_64 same(seed);
      to.push_back(std::make_unique<Batch>(kHere));
      gcl_test::add_random(*to.back(), int(same() % (kBatchOpsMax + 1)), kPortRegion / kBatches, bytes_max, same,
                           [&](uint32_t some) { return std::exchange(bytes, bytes + some); });
      for (int i = 0; i < to.back()->size(); i++)
        to.back()->op(i).at = to.back()->op(i).at + uint64_t(part) * (kPortRegion / kBatches);
    };
    for (int i = 0; i < kBatches; i++) {
      const uint64_t seed = random();
      const size_t from = size_t(i) * kBatchOpsMax * bytes_max;
      add(batches, mine.data() + from, seed, i), add(theirs, other.data() + from, seed, i);
      all.push_back(batches.back().get());
      without.post(*theirs.back());
    }
    memory.post(all.data(), kBatches / 2);
    memory.post(all.data() + kBatches / 2, kBatches / 2);
    for (const Batch* batch : all) EXPECT_EQ(batch->state.load(), BatchState::kPosted);
    for (auto open = [](const Batch* b) { return !b->done(); }; std::any_of(all.begin(), all.end(), open);) {
      take();
      ASSERT_FALSE(taken.empty()) << "the rest is never posted";
      for (uint64_t some = 1 + random() % taken.size(); some > 0; some--) carry_out(random() % taken.size());
      memory.poll();
    }
    for (int i = 0; i < kBatches; i++) {
      EXPECT_TRUE(batches[i]->known());
      for (int n = 0; n < batches[i]->size(); n++) ASSERT_EQ(batches[i]->op(n).old, theirs[i]->op(n).old);
    }
    ASSERT_EQ(mine, other);
    ASSERT_EQ(region.words, region_without.words);
  }
  for (int c = 0; c < kCounters; c++)
    EXPECT_EQ(counters.get(Counter(c)), counted.get(Counter(c))) << counter_name(Counter(c));
}

TEST_F(TcpPort, WhatTheNodesArenaHasIsNotCopied) {
  TcpMemory memory(*port, counters);
  alignas(64) static std::byte page[kPageSize];
  Batch batch(kHere);
  batch.write(PoolAddress::at(kHere, 0), page, kPageSize);
  batch.op(0).registered = true;
  memory.post(batch);
  ASSERT_TRUE(take());
  EXPECT_EQ(taken[0]->op[0].local, page);
  carry_out(0);
  memory.poll();
  EXPECT_TRUE(batch.known());
}

TEST_F(TcpPort, TheWorkerIsRungOnlyWhenItSleeps) {
  TcpMemory memory(*port, counters);
  Batch first(kHere), second(kHere), third(kHere);
  for (Batch* batch : {&first, &second, &third}) batch->load(PoolAddress::at(kHere, 0));
  memory.post(first);
  EXPECT_FALSE(signaled()) << "it does not sleep";
  EXPECT_FALSE(falls_asleep()) << "there is something to do";
  EXPECT_TRUE(take());
  EXPECT_FALSE(take());
  ASSERT_TRUE(falls_asleep());
  memory.post(second);
  EXPECT_TRUE(signaled());
  worker_wakeup->clear();
  memory.post(third);
  EXPECT_FALSE(signaled()) << "it was signaled once";
  take();
  while (!taken.empty()) carry_out(0);
  for (Batch* batch : {&first, &second, &third}) EXPECT_TRUE(memory.wait(*batch).ok());
}

TEST_F(TcpPort, APollSleepsUntilOneIsDoneButNotForLong) {
  TcpMemory memory(*port, counters);
  Batch batch(kHere);
  batch.load(PoolAddress::at(kHere, 0));
  memory.poll();  // nothing is posted: at once
  memory.post(batch);
  uint64_t shortest = ~uint64_t{0}, all = 0;
  for (int i = 0; i < 50; i++) {
    const uint64_t before = monotonic_ns();
    memory.poll();
    const uint64_t took = monotonic_ns() - before;
    shortest = std::min(shortest, took), all += took;
  }
  EXPECT_GE(all, 25 * 100'000u) << "it does not sleep";
  EXPECT_LT(shortest, 5'000'000u);
  EXPECT_FALSE(batch.done());
  take();
  std::thread worker([&] { carry_out(0); });
  EXPECT_TRUE(memory.wait(batch).ok());
  worker.join();
}

// Whether they were posted before the worker ended or behind it, or while it did.
TEST_F(TcpPort, AWorkerThatHasEndedLeavesNoBatchBehind) {
  for (int round = 0; round < 200; round++) {
    PortRig fresh;
    TcpMemory memory(*fresh.port, counters);
    std::atomic<bool> begun{false};
    std::thread worker([&] {
      while (!begun.load()) fresh.take();
      fresh.port->close();
      fresh.take();
      for (PortEntry* entry : fresh.taken) fresh.done(*entry, false);
    });
    std::vector<std::unique_ptr<Batch>> batches;
    for (int i = 0; i < 100; i++) {
      batches.push_back(std::make_unique<Batch>(kHere));
      batches.back()->load(PoolAddress::at(kHere, 0));
      memory.post(*batches.back());
      if (i == round % 40) begun.store(true);
    }
    for (auto& batch : batches) {
      EXPECT_FALSE(memory.wait(*batch).ok());
      EXPECT_EQ(batch->state.load(), BatchState::kUnknown);
    }
    worker.join();
  }
}

// Several sessions, each of a thread of its own, and a worker that sleeps whenever it may.
TEST_F(TcpPort, SessionsAndTheWorkerWakeEachOther) {
  std::atomic<bool> over{false};
  std::thread worker([&] {
    while (!over.load()) {
      take();
      while (!taken.empty()) carry_out(taken.size() / 2);
      if (!falls_asleep()) continue;
      if (!over.load()) {  // else the end came before it said that it sleeps: nobody signals it again
        pollfd look{worker_wakeup->fd(), POLLIN, 0};
        const int woken = ::poll(&look, 1, gcl_test::kPatienceMs);
        EXPECT_EQ(woken, 1) << "nobody signals it";
        if (woken == 1) worker_wakeup->clear();
      }
      worker_wakeup->is_awake();
    }
  });
  std::vector<std::thread> sessions;
  const int rounds = 2000 * gcl_test::longer();
  for (int s = 0; s < kPlaces; s++)
    sessions.emplace_back([&] {
      Counters mine{};
      TcpMemory memory(*port, mine);
      for (int i = 0; i < rounds; i++) EXPECT_TRUE(memory.faa(PoolAddress::at(kHere, 64), 1));
    });
  for (auto& session : sessions) session.join();
  EXPECT_EQ(region.words[8], uint64_t(kPlaces) * uint64_t(rounds));
  over.store(true);
  worker_wakeup->signal();
  worker.join();
}

}  // namespace
}  // namespace coherence::tcp
