// Sessions on two nodes whose transactions hold what they read and write, or not, and a table.
#pragma once

#include "extension/engine/serializable/transaction_holds.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

inline constexpr uint32_t kHoldsMax = 100, kSessions = 64;

class HoldsTest : public ::testing::Test {
 protected:
  // A session and its handle on the table.
  struct Actor {
    Actor(HoldsTest& test, int node)
        : worker(test.engine_, node),
          holds(worker.txns(), *test.tables_[size_t(node)]),
          heap(worker.txns(), test.relation_) {}
    ~Actor() {
      worker.abort();
      holds.end();
    }
    // A serializable transaction begins.
    Snapshot begin(uint32_t command = 1) {
      holds.begin(kHoldsMax, patience_ms);
      Snapshot snapshot = worker.snapshot(command);
      snapshot.strict = true;
      return snapshot;
    }
    Cts commit() {
      const Cts cts = worker.commit();
      holds.end();
      return cts;
    }
    coherence::Result<RowRead> read(Tid tid, const Snapshot& snapshot) {
      return heap.fetch(tid, snapshot, buffer.bytes);
    }
    coherence::Errc update(Tid tid, const std::string& text = "new") {
      TestRow row(text);
      auto done = heap.update({.tid = tid, .row = row.image(), .command = 1});
      return done ? coherence::Errc::kOk : done.error();
    }
    coherence::Errc insert(const std::string& text = "row") {
      auto tid = heap.insert(TestRow(text).image(), 0);
      if (tid) inserted = *tid;
      return tid ? coherence::Errc::kOk : tid.error();
    }
    Worker worker;
    TransactionHolds holds;
    Heap heap;
    RowBuffer buffer;
    Tid inserted;
    int32_t patience_ms = kPatienceForever;
  };

  HoldsTest() : engine_({.cluster = {.nodes = 2}}) {
    for (int n = 0; n < 2; ++n) {
      memory_.push_back(std::make_unique<std::byte[]>(HoldTable::bytes_for(kHoldsMax, kSessions) + 64));
      auto at = (reinterpret_cast<uintptr_t>(memory_.back().get()) + 63) & ~uintptr_t{63};
      tables_.push_back(HoldTable::create(reinterpret_cast<void*>(at), kHoldsMax, kSessions,
                                          &engine_.cluster().pool(n).coherence_node().fence_word()));
    }
    Worker maker(engine_, 0);
    auto made = Heap::create(maker.txns());
    EXPECT_TRUE(made.ok());
    relation_ = *made;
    Heap heap(maker.txns(), relation_);
    auto tid = heap.insert(TestRow("old").image(), 0);
    EXPECT_TRUE(tid.ok());
    row_ = *tid;
    maker.commit();
  }
  ~HoldsTest() override {
    for (HoldTable* table : tables_) EXPECT_EQ(table->used(), 0u);
  }

  Engine engine_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<HoldTable*> tables_;
  RelationId relation_;
  Tid row_;
};

}  // namespace engine_test
