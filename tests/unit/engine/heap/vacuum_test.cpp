// VACUUM from several nodes at once.
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

struct Nothing final : IndexCleaner {
  coherence::Status remove(std::span<const Tid>) override { return {}; }
};

// Another node's VACUUM of the relation, while one cleans the indexes.
struct Meanwhile final : IndexCleaner {
  explicit Meanwhile(Heap& heap) : other(heap) {}
  coherence::Status remove(std::span<const Tid> tids) override {
    EXPECT_EQ(tids.size(), 1u);
    Nothing cleaner;
    auto stats = other.vacuum(cleaner, 2000);
    EXPECT_TRUE(stats.ok());
    EXPECT_TRUE(stats->skipped);
    EXPECT_EQ(stats->freed, 0u);
    return {};
  }
  Heap& other;
};

// Between one VACUUM's look at the page and its cleaning of the indexes another must not free what it found.
TEST(HeapVacuum, ExcludesAnotherOfTheRelationUntilItsTransactionEnds) {
  Engine engine({.cluster = {.nodes = 2}});
  Worker a(engine, 0), b(engine, 1);
  auto relation = Heap::create(a.txns());
  ASSERT_TRUE(relation.ok());
  Heap heap_a(a.txns(), *relation), heap_b(b.txns(), *relation);
  auto gone = heap_a.insert(TestRow("gone").image(), 0);
  ASSERT_TRUE(gone.ok());
  a.commit();
  EXPECT_EQ(heap_a.remove(*gone, 0)->result, RowResult::kOk);
  a.commit();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  Meanwhile meanwhile(heap_a);
  auto stats = heap_b.vacuum(meanwhile, 2000);
  ASSERT_TRUE(stats.ok());
  EXPECT_FALSE(stats->skipped);
  EXPECT_EQ(stats->freed, 1u);
  Nothing cleaner;
  EXPECT_FALSE(heap_b.vacuum(cleaner, 0)->skipped);  // its own
  EXPECT_TRUE(heap_a.vacuum(cleaner, 0)->skipped);
  b.commit();
  EXPECT_FALSE(heap_a.vacuum(cleaner, 0)->skipped);
  EXPECT_TRUE(heap_b.vacuum(cleaner, 0)->skipped);
  a.abort();
  EXPECT_FALSE(heap_b.vacuum(cleaner, 0)->skipped);
}

}  // namespace engine_test
