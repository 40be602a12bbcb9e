// What primaries say of themselves: read whole, under the incarnation that said it.
#include "extension/engine/samples/sample_registry.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "tests/support/eventually.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace {

using namespace engine_test;

SampleRegistry registry_of(Worker& worker, int node) {
  auto& pool = worker.txns().pool();
  return {worker.session().memory(), pool.region(bufmgr::Region::kSamples), pool.nodes_max(),
          coherence::NodeId{uint8_t(node)}};
}

Sample sample(uint64_t incarnation, uint64_t value) {
  Sample s;
  s.incarnation = incarnation;
  s.taken_us = int64_t(value);
  for (auto& c : s.coherence) c = value;
  for (auto& c : s.bufmgr) c = value;
  for (auto& h : s.hot) h.requests_sent = value;
  s.aborted = value;
  return s;
}

TEST(SampleRegistry, IsReadByOthersUnderItsIncarnation) {
  Engine engine({.cluster = {.nodes = 2}});
  Worker one(engine, 0), two(engine, 1);
  SampleRegistry mine = registry_of(one, 0), theirs = registry_of(two, 1);
  Sample seen;
  EXPECT_FALSE(theirs.read(coherence::NodeId{0}, 7, &seen));
  mine.publish(sample(7, 42));
  ASSERT_TRUE(theirs.read(coherence::NodeId{0}, 7, &seen));
  EXPECT_EQ(42u, seen.aborted);
  EXPECT_EQ(42u, seen.hot[engine::kSampleHotPages - 1].requests_sent);
  EXPECT_FALSE(theirs.read(coherence::NodeId{0}, 8, &seen));  // the next incarnation has said nothing yet
  EXPECT_FALSE(mine.read(coherence::NodeId{1}, 7, &seen));    // each has a place of its own
  mine.clear();
  EXPECT_FALSE(theirs.read(coherence::NodeId{0}, 7, &seen));
}

TEST(SampleRegistry, AnotherBuildsSampleIsNotShown) {
  Engine engine({.cluster = {.nodes = 1}});
  Worker one(engine, 0);
  SampleRegistry registry = registry_of(one, 0);
  Sample other = sample(7, 1), seen;
  other.format += 1;
  registry.publish(other);
  EXPECT_FALSE(registry.read(coherence::NodeId{0}, 7, &seen));
}

TEST(SampleRegistry, IsReadWholeOrNotAtAll) {
  Engine engine({.cluster = {.nodes = 2}});
  Worker one(engine, 0), two(engine, 1);
  SampleRegistry mine = registry_of(one, 0), theirs = registry_of(two, 1);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t n = 1; !stop.load(); ++n) mine.publish(sample(7, n));
  });
  int changes = 0;  // that were seen
  uint64_t last = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(gcl_test::kPatienceMs);
  for (int i = 0; i < 20'000 || (changes < 20 && std::chrono::steady_clock::now() < until); ++i) {
    Sample seen;
    if (!theirs.read(coherence::NodeId{0}, 7, &seen)) continue;
    const uint64_t value = seen.aborted;
    changes += std::exchange(last, value) != value;
    bool same = seen.taken_us == int64_t(value);
    for (const uint64_t c : seen.coherence) same &= c == value;
    for (const uint64_t c : seen.bufmgr) same &= c == value;
    for (const auto& h : seen.hot) same &= h.requests_sent == value;
    ASSERT_TRUE(same) << "a mix of two samples";
  }
  stop = true;
  writer.join();
  EXPECT_GE(changes, 20);
  mine.publish(sample(7, 1));
  Sample seen;
  EXPECT_TRUE(theirs.read(coherence::NodeId{0}, 7, &seen));
}

}  // namespace
