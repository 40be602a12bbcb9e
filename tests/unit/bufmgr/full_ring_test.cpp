// A ring that fills up behind a page which is latched for long.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "bufmgr/mini_transaction.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace bufmgr {
namespace {

using gcl_test::Cluster;
using gcl_test::Switch;

constexpr uint32_t kChangeBytes = 2048;

Status change(BufferPool& pool, Session& session, PageId id, uint8_t with) {
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(kChangeBytes));
  auto page = pool.fix_exclusive(session, id);
  if (!page) return page.error();
  change.join(*page);
  std::vector<std::byte> bytes(kChangeBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(with + i * 7);  // nothing to pack
  change.write(*page, kPageBody, bytes.data(), kChangeBytes);
  change.commit();
  return {};
}

// The oldest change is on the latched page, so the tail stays there: writers of the node wait in reserve(), where no
// latch is held (log.reserve-before-latch).  So nobody waits for them, readers and other nodes go on, a waiter can be
// interrupted, and all go on when the latch ends.
TEST(FullRing, BehindAPageThatIsLatchedForLong) {
  Cluster cluster({.nodes = 2, .ring_bytes = kRingBytesLeast});
  BufferPool &pool = cluster.pool(0), &peer = cluster.pool(1);
  auto holder = cluster.session(0), reader = cluster.session(0);
  const PageId hot = *pool.allocate(*holder, 1), other = *pool.allocate(*holder, 1), far = *pool.allocate(*holder, 1);
  ASSERT_TRUE(change(pool, *holder, hot, 1).ok());
  const uint64_t version_before = pool.fix_shared(*reader, other)->header().version;

  Switch interrupts;
  std::atomic<uint64_t> changes{0};
  std::atomic<bool> stop{false};
  auto write_on = [&](bufmgr::Interrupts* of) {
    auto session = cluster.session(0, of);
    Status outcome;
    for (uint8_t n = 0; outcome.ok() && !stop.load(); ++n) {
      outcome = change(pool, *session, other, n);
      changes += outcome.ok();
    }
    EXPECT_EQ(session->guards_held(), 0);
    EXPECT_EQ(session->ring_reserved(), 0u);
    return outcome;
  };
  std::thread interrupted, patient;
  Status outcome_of_interrupted, outcome_of_patient;
  {
    auto guard = pool.fix_exclusive(*holder, hot);
    ASSERT_TRUE(guard.ok());
    interrupted = std::thread([&] { outcome_of_interrupted = write_on(&interrupts); });
    patient = std::thread([&] { outcome_of_patient = write_on(nullptr); });
    const auto waits = [&] {
      const uint64_t seen = changes.load();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      // Or they have had no processor for so long.
      return seen == changes.load() && pool.ring().used() >= pool.ring().data_bytes() / 2;
    };
    ASSERT_TRUE(gcl_test::eventually(waits)) << pool.ring().used() << " of " << pool.ring().data_bytes();

    EXPECT_TRUE(pool.fix_shared(*reader, other).ok());
    auto elsewhere = cluster.session(1);
    EXPECT_TRUE(change(peer, *elsewhere, far, 3).ok());
    EXPECT_TRUE(change(peer, *elsewhere, other, 5).ok());  // it comes from the node whose writers wait

    interrupts.set(true);
    interrupted.join();
    EXPECT_EQ(outcome_of_interrupted.error(), coherence::Errc::kInterrupted);
  }
  const uint64_t until = changes.load();
  EXPECT_TRUE(gcl_test::eventually([&] { return changes.load() > until + 500; }));  // twice round the ring
  stop.store(true);
  patient.join();
  EXPECT_TRUE(outcome_of_patient.ok());
  auto page = pool.fix_shared(*reader, other);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->header().version, version_before + changes.load() + 1);  // the peer's change
}

}  // namespace
}  // namespace bufmgr
