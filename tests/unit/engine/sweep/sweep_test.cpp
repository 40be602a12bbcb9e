// Ids that were rolled back are forgotten when no page names them, and no reader takes them for committed
// (txn.forget-unnamed-ids).
#include "extension/engine/sweep/sweeper.hpp"

#include <random>
#include <set>

#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/shm/shm_transport.hpp"
#include "extension/engine/reclaim/reclaim_list.hpp"
#include "extension/engine/reclaim/reclaimer.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {
namespace {

using gcl_test::eventually;

struct Names final : NamedIds {
  Result<bool> any_rolled_back(uint64_t) override { return named; }
  bool named = false;
};

// The transport of one machine, and what others do right after a session has read a certain word.
class Meanwhile final : public coherence::ShmTransport {
 public:
  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts& node, coherence::Counters& counters) override {
    return std::make_unique<Hooked>(coherence::MappedPool::of(node.pool), counters, *this);
  }
  coherence::PoolAddress word;
  std::function<void()> act;  // once

 private:
  class Hooked final : public coherence::Memory {
   public:
    Hooked(coherence::MemoryMap& map, coherence::Counters& counters, Meanwhile& by) : shm_(map, counters), by_(by) {}
    using Memory::post;
    void post(coherence::Batch* const* batches, int count) override {
      shm_.post(batches, count);
      for (int i = 0; by_.act && i < count; ++i)
        for (int k = 0; by_.act && k < batches[i]->size(); ++k)
          if (batches[i]->op(k).verb == coherence::Verb::kLoad && batches[i]->op(k).at == by_.word)
            std::exchange(by_.act, nullptr)();
    }
    void poll() override { shm_.poll(); }

   private:
    coherence::ShmMemory shm_;
    Meanwhile& by_;
  };
};

class Sweep : public ::testing::Test {
 protected:
  static constexpr int kRows = 60;
  static constexpr int kMany = 1500;  // ids: more than a page of the list

  Sweep() : engine_({.cluster = {.nodes = 2}, .slots_max = 256}), writer_(engine_, 0) {
    relation_ = *Heap::create(writer_.txns());
    heap_ = std::make_unique<Heap>(writer_.txns(), relation_);
    for (int i = 0; i < kRows; ++i) {
      rows_.push_back(*heap_->insert(TestRow("row").image(), 0));
      texts_.insert("row");
    }
    writer_.commit();
  }

  void update(int row) {
    const TestRow image("never");
    auto done = heap_->update({.tid = rows_[row], .row = image.image(), .command = 1, .indexed_changed = row % 2 == 0});
    ASSERT_TRUE(done.ok());
    ASSERT_EQ(done->row.result, RowResult::kOk);
  }
  void remove(int row) {
    auto done = heap_->remove(rows_[row], 1);
    ASSERT_TRUE(done.ok() && done->result == RowResult::kOk);
  }
  // Changes of all kinds that are rolled back, some of them with a savepoint of a transaction that commits.
  void roll_back(int count) {
    for (int i = 0; i < count; ++i) {
      const bool sub = i % 2 == 0;
      if (sub) {
        ASSERT_TRUE(writer_->id_for_write().ok());
        ASSERT_TRUE(writer_->sub_begin(2).ok());
      }
      bad_.insert(writer_->id_for_write()->raw);
      const int row = i / 3 % kRows;
      switch (i % 3) {
        case 0:
          EXPECT_TRUE(heap_->insert(TestRow("never").image(), 1).ok());
          break;
        case 1:
          update(row);
          break;
        default:
          remove(row);
      }
      if (sub) writer_->sub_abort(2);
      sub ? void(writer_.commit()) : writer_.abort();
    }
  }
  // A node whose status log is nearly empty truncates it when more ids come (TxnSystem::tick()).
  void end_one() {
    Worker another(engine_, 0);
    EXPECT_TRUE(another->id_for_write().ok());
    another.commit();
  }
  // Until a pass was carried through, or for a while.
  bool passes(Sweeper& sweeper, bool long_enough = true) {
    const uint64_t before = sweeper.passes();
    auto turn = [&] {
      end_one();
      for (;;) {
        auto more = sweeper.step();
        EXPECT_TRUE(more.ok());
        if (!more || !*more) break;
      }
      return sweeper.passes() > before;
    };
    if (long_enough) return eventually(turn);
    for (int i = 0; i < 40 && !turn(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return sweeper.passes() > before;
  }
  // Rows whose header names one of the ids.
  int naming(const std::set<uint64_t>& ids) {
    Worker reader(engine_, 1);
    Heap heap(reader.txns(), relation_);
    int found = 0;
    auto rows = std::make_unique<PageRows>();
    const uint32_t used = *heap.used_blocks();
    for (uint32_t i = 0; i < used; ++i) {
      EXPECT_TRUE(heap.read_block(heap.block_at(i), {.kind = SnapshotKind::kAny}, *rows).ok());
      for (int r = 0; r < rows->count; ++r) {
        RowHeader row;
        std::memcpy(&row, rows->row(rows->offset[r]), sizeof row);
        found += row.creator.kind() == RowTxnKind::kInserted && ids.contains(row.creator.id().raw);
        found += row.ended() && ids.contains(row.deleter.id().raw);
      }
    }
    return found;
  }
  std::multiset<std::string> seen_by(Worker& worker) {
    Heap heap(worker.txns(), relation_);
    std::multiset<std::string> texts;
    for (const std::string& text : scan_all(heap, worker.snapshot())) texts.insert(text);
    worker.abort();
    return texts;
  }
  // Of the rolled back ids, those that have left the status log when the list has more than a page.
  std::set<uint64_t> first() const { return {bad_.begin(), std::next(bad_.begin(), 1000)}; }
  uint64_t list_pages() { return *writer_->aborted_pages(); }

  Engine engine_;
  Worker writer_;
  RelationId relation_;
  std::unique_ptr<Heap> heap_;
  std::vector<Tid> rows_;
  std::multiset<std::string> texts_;
  std::set<uint64_t> bad_;
  Names names_;
};

TEST_F(Sweep, WhatWasRolledBackIsForgottenAndStaysRolledBack) {
  Worker old_here(engine_, 0), old_there(engine_, 1), member(engine_, 0);
  roll_back(kMany);
  for (Worker* worker : {&old_here, &old_there}) EXPECT_EQ(seen_by(*worker), texts_);
  EXPECT_GE(naming(bad_), kRows);
  ASSERT_TRUE(eventually([&] { return list_pages() > 1; }));
  Sweeper sweeper(member.txns(), names_, 1);
  const uint64_t free_before = *engine_.cluster().pool(0).free_pages(member.session());
  ASSERT_TRUE(passes(sweeper));
  EXPECT_GE(*engine_.cluster().pool(0).free_pages(member.session()), free_before);
  EXPECT_EQ(list_pages(), 1u);
  Worker new_here(engine_, 0), new_there(engine_, 1);
  for (Worker* worker : {&old_here, &old_there, &new_here, &new_there}) EXPECT_EQ(seen_by(*worker), texts_);
  EXPECT_EQ(naming(first()), 0);
  // All rows may be changed again, and are pruned as if nothing had been.
  for (int i = 0; i < kRows; ++i) remove(i);
  writer_.commit();
  EXPECT_TRUE(seen_by(old_there).empty());
}

// Ids that leave the status log right when a pass begins: it knows them all, or leaves them to the next.
TEST_F(Sweep, WhatIsListedWhileAPassBeginsIsNotForgottenUncleaned) {
  roll_back(kMany);
  ASSERT_TRUE(eventually([&] { return list_pages() > 1; }));
  Meanwhile meanwhile;
  coherence::Node& node = engine_.cluster().pool(0).coherence_node();
  node.set_transport(meanwhile);
  Worker member(engine_, 0);
  node.set_transport(coherence::shm_transport());
  Sweeper sweeper(member.txns(), names_, 1);
  meanwhile.word = member->words().aborted_count(NodeId{0});
  meanwhile.act = [&] {
    roll_back(300);
    const uint64_t last = TxnId{*bad_.rbegin()}.sequence();
    ASSERT_TRUE(eventually([&] {
      end_one();
      return engine_.shared(0).frozen.load() >= last;
    }));
  };
  ASSERT_TRUE(passes(sweeper));
  EXPECT_FALSE(meanwhile.act);
  Worker reader(engine_, 1);
  EXPECT_EQ(seen_by(reader), texts_);
}

// The list goes on behind what was forgotten; sessions that know pages of before find their way.
TEST_F(Sweep, TheListGoesOnAndItsFirstPagesAreGivenBackAgainAndAgain) {
  Worker follower(engine_, 1), member(engine_, 0);
  Sweeper sweeper(member.txns(), names_, 1);
  for (int round = 0; round < 4; ++round) {
    std::vector<TxnId> good;
    for (int part = 0; part < 5; ++part) {
      roll_back(kMany / 4);
      good.push_back(*writer_->id_for_write());
      writer_.commit();
    }
    EXPECT_EQ(seen_by(follower), texts_);
    ASSERT_TRUE(passes(sweeper)) << round;
    // One that began in between leaves what was not frozen by then to the next.
    ASSERT_TRUE(eventually([&] {
      while (*sweeper.step()) {
      }
      return list_pages() <= 2;
    })) << round;
    for (const TxnId id : good) {
      auto status = follower->status(id);
      ASSERT_TRUE(status.ok());
      EXPECT_TRUE(status->committed());
    }
    EXPECT_EQ(seen_by(follower), texts_);
  }
}

TEST_F(Sweep, ASnapshotFromBeforeHoldsItBack) {
  Worker reader(engine_, 1), member(engine_, 0);
  roll_back(kMany);
  ASSERT_TRUE(eventually([&] { return list_pages() > 1; }));
  (void)reader.snapshot();
  Sweeper sweeper(member.txns(), names_, 1);
  EXPECT_FALSE(passes(sweeper, false));
  EXPECT_EQ(naming(first()), 0) << "the pages are done";
  EXPECT_TRUE(reader->status(TxnId{*bad_.begin()})->aborted()) << "a reader of a copy may still ask";
  reader.abort();
  EXPECT_TRUE(passes(sweeper));
}

TEST_F(Sweep, ATransactionThatRunsHoldsItBack) {
  Worker other(engine_, 0), member(engine_, 0);
  roll_back(kMany);
  ASSERT_TRUE(eventually([&] { return list_pages() > 1; }));
  ASSERT_TRUE(other->id_for_write().ok());
  Sweeper sweeper(member.txns(), names_, 1);
  EXPECT_FALSE(passes(sweeper, false));
  other.commit();
  EXPECT_TRUE(passes(sweeper));
}

TEST_F(Sweep, WhatIsNamedElsewhereHoldsItBack) {
  Worker member(engine_, 0);
  ASSERT_TRUE(ReclaimList(writer_.txns())
                  .allocate(*writer_->id_for_write(), ReclaimKind::kSequence, bufmgr::PageUse::kHousekeeping)
                  .ok());
  writer_.abort();
  roll_back(kMany);
  ASSERT_TRUE(eventually([&] { return list_pages() > 1; }));
  Sweeper sweeper(member.txns(), names_, 1);
  EXPECT_FALSE(passes(sweeper, false)) << "by a reclaim record";
  Reclaimer reclaimer(member.txns());
  while (*reclaimer.step()) {
  }
  names_.named = true;
  EXPECT_FALSE(passes(sweeper, false)) << "by the host";
  names_.named = false;
  EXPECT_TRUE(passes(sweeper));
}

// Rows 0, 1, ... hold numbers whose sum never changes; transactions move them about, and most are rolled back.
class Mover {
 public:
  Mover(Engine& engine, int node, RelationId relation, unsigned seed)
      : worker_(engine, node), heap_(worker_.txns(), relation), random_(seed) {}
  static std::string text(int row, int value) { return std::to_string(row) + ":" + std::to_string(value); }
  static int value(const std::string& text) { return std::stoi(text.substr(text.find(':') + 1)); }
  int sum() {
    int sum = 0;
    for (const FoundRow& row : scan_rows(heap_, worker_.snapshot())) sum += value(row.text);
    worker_.abort();
    return sum;
  }
  void move() {
    std::vector<FoundRow> rows = scan_rows(heap_, worker_.snapshot());
    std::sort(rows.begin(), rows.end(),
              [](const FoundRow& a, const FoundRow& b) { return std::stoi(a.text) < std::stoi(b.text); });
    size_t a = random_() % rows.size(), b = random_() % rows.size();
    if (a == b) return worker_.abort();
    if (a > b) std::swap(a, b);
    const bool sub = random_() % 2;
    if (sub) {
      EXPECT_TRUE(worker_->sub_begin(2).ok());
      (void)change(rows[a], 100);
      worker_->sub_abort(2);
      EXPECT_TRUE(worker_->sub_begin(2).ok());
    }
    const bool done = change(rows[a], 1) && change(rows[b], -1);
    if (sub) done ? worker_->sub_commit(2) : worker_->sub_abort(2);
    done&& random_() % 4 == 0 ? void(worker_.commit()) : worker_.abort();
  }

 private:
  bool change(const FoundRow& row, int by) {
    const TestRow image(text(std::stoi(row.text), value(row.text) + by));
    auto done = heap_.update({.tid = row.tid, .row = image.image(), .command = 1, .indexed_changed = false});
    EXPECT_TRUE(done.ok());
    return done && done->row.result == RowResult::kOk;
  }
  Worker worker_;
  Heap heap_;
  std::mt19937 random_;
};

TEST(SweepStress, SumsStayWhatTheyAre) {
  constexpr int kRows = 12;
  Engine engine({.cluster = {.nodes = 2, .sessions_max = 32}, .slots_max = 256});
  RelationId relation;
  {
    Worker maker(engine, 0);
    relation = *Heap::create(maker.txns());
    Heap heap(maker.txns(), relation);
    for (int i = 0; i < kRows; ++i) ASSERT_TRUE(heap.insert(TestRow(Mover::text(i, 0)).image(), 0).ok());
    maker.commit();
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Mover mover(engine, t % 2, relation, unsigned(t) + 1);
      while (!stop && !::testing::Test::HasFailure()) mover.move();
    });
  threads.emplace_back([&] {
    Mover reader(engine, 1, relation, 0);
    while (!stop && !::testing::Test::HasFailure()) EXPECT_EQ(reader.sum(), 0);
  });
  Names names;
  std::atomic<uint64_t> passed[2] = {};
  for (int node = 0; node < 2; ++node)
    threads.emplace_back([&, node] {
      Worker member(engine, node);
      Sweeper sweeper(member.txns(), names, 0);
      while (!stop) {
        auto more = sweeper.step();
        EXPECT_TRUE(more.ok());
        passed[node] = sweeper.passes();
        if (!more || !*more) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  const auto enough = uint64_t(20 * gcl_test::longer());
  EXPECT_TRUE(
      eventually([&] { return (passed[0] >= enough && passed[1] >= enough) || ::testing::Test::HasFailure(); }));
  stop = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace engine_test
