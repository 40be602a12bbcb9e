// Many sessions of several nodes on the same rows: nothing is lost, and every snapshot is consistent.
#include <random>

#include "tests/support/longer.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

namespace {

long number(const RowBuffer& buffer, uint32_t bytes) { return std::stol(buffer.text(bytes)); }

// READ COMMITTED's read-modify-write by TID: lock the newest version, compute from what was locked.  Returns the new
// version's tid; an error to be retried after an abort.
Result<Tid> add(Heap& heap, Tid tid, long delta, uint32_t command, RowBuffer& buffer) {
  auto locked = heap.lock({.tid = tid, .command = command, .follow = true}, buffer.bytes);
  if (!locked) return locked.error();
  EXPECT_EQ(locked->row.result, RowResult::kOk);
  if (locked->row.result != RowResult::kOk) return Errc::kCorrupt;
  TestRow row(std::to_string(number(buffer, locked->bytes) + delta));
  auto done = heap.update({.tid = locked->tid, .row = row.image(), .command = command, .indexed_changed = false});
  if (!done) return done.error();
  EXPECT_EQ(done->row.result, RowResult::kOk);
  return done->tid;
}

std::vector<Tid> load(Engine& engine, RelationId* relation, int rows, long value) {
  Worker worker(engine, 0);
  *relation = *Heap::create(worker.txns());
  Heap heap(worker.txns(), *relation);
  std::vector<Tid> tids;
  for (int i = 0; i < rows; ++i) tids.push_back(*heap.insert(TestRow(std::to_string(value)).image(), 0));
  worker.commit();
  return tids;
}

// Where a scan finds every row, by a snapshot: tid and value.
std::vector<std::pair<Tid, long>> versions(Heap& heap, const Snapshot& snapshot) {
  std::vector<std::pair<Tid, long>> found;
  for (const FoundRow& row : scan_rows(heap, snapshot)) found.push_back({row.tid, std::stol(row.text)});
  return found;
}

long total(const std::vector<std::pair<Tid, long>>& rows) {
  long sum = 0;
  for (auto& row : rows) sum += row.second;
  return sum;
}

}  // namespace

TEST(HeapStress, IncrementsFromAllNodesLoseNothing) {
  Engine engine({.cluster = {.nodes = kNodes}});
  RelationId relation;
  constexpr int kRows = 5, kThreads = 6;
  load(engine, &relation, kRows, 0);
  std::atomic<long> done{0};
  std::vector<std::thread> threads;
  constexpr long kEnough = 50;
  const auto until = std::chrono::steady_clock::now() + gcl_test::longer(std::chrono::seconds(3));
  const auto going_on = [&] {
    const auto now = std::chrono::steady_clock::now();
    return now < until || (done.load() <= kEnough && now < until + std::chrono::milliseconds(kPatienceMs));
  };
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Worker worker(engine, t % kNodes);
      Heap heap(worker.txns(), relation);
      std::mt19937 random(gcl_test::seed(t + 1));
      RowBuffer buffer;
      while (going_on()) {
        auto rows = versions(heap, worker.snapshot());
        ASSERT_EQ(rows.size(), size_t(kRows));
        auto added = add(heap, rows[random() % kRows].first, 1, 0, buffer);
        if (!added) {
          ASSERT_EQ(added.error(), Errc::kInterrupted);
          worker.abort();
        } else if (random() % 8 == 0) {
          worker.abort();
        } else {
          worker.commit();
          done.fetch_add(1);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  Worker worker(engine, 1);
  Heap heap(worker.txns(), relation);
  auto rows = versions(heap, worker.snapshot());
  EXPECT_EQ(rows.size(), size_t(kRows));
  EXPECT_EQ(total(rows), done.load());
  EXPECT_GT(done.load(), kEnough);
  printf("%ld increments\n", done.load());
}

// Transfers between accounts, with savepoints that roll back now and then, while readers on all nodes add up.
TEST(HeapStress, TheSumStaysWhileMoneyMoves) {
  Engine engine({.cluster = {.nodes = kNodes, .frames = 256}});
  RelationId relation;
  constexpr int kRows = 300;
  constexpr long kEach = 1000;
  load(engine, &relation, kRows, kEach);
  std::atomic<bool> stop{false};
  std::atomic<long> transfers{0}, sums{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2 * kNodes; ++t) {
    threads.emplace_back([&, t] {
      Worker worker(engine, t % kNodes);
      worker.waiter().timeout_ms = 100;  // two transfers may wait for each other
      Heap heap(worker.txns(), relation);
      std::mt19937 random(gcl_test::seed(t + 1));
      RowBuffer buffer;
      while (!stop.load()) {
        if (t >= kNodes) {
          auto snapshot = worker.snapshot();
          for (int i = 0; i < 3; ++i) {
            auto rows = versions(heap, snapshot);
            ASSERT_EQ(rows.size(), size_t(kRows));
            ASSERT_EQ(total(rows), kRows * kEach);
            sums.fetch_add(1);
          }
          worker->set_oldest(std::nullopt);
          continue;
        }
        auto rows = versions(heap, worker.snapshot());
        for (int i = 0; i < 20; ++i) {
          worker.snapshot();
          Tid from = rows[random() % kRows].first, to = rows[random() % kRows].first;
          if (from == to) continue;
          auto one = add(heap, from, -7, 0, buffer);
          if (one && random() % 4 == 0) {
            EXPECT_TRUE(worker->sub_begin(2).ok());
            auto wrong = add(heap, to, 1000000, 1, buffer);
            worker->sub_abort(2);
            if (!wrong) one = wrong.error();
          }
          auto two = one ? add(heap, to, 7, 2, buffer) : Result<Tid>(one.error());
          if (one && two && random() % 8 != 0) {
            worker.commit();
            transfers.fetch_add(1);
          } else {
            worker.abort();
          }
          rows = versions(heap, worker.snapshot());
        }
      }
    });
  }
  std::this_thread::sleep_for(gcl_test::longer(std::chrono::seconds(4)));
  EXPECT_TRUE(gcl_test::eventually([&] { return transfers.load() > 10 && sums.load() > 10; }));
  stop.store(true);
  for (auto& thread : threads) thread.join();
  printf("%ld transfers, %ld sums\n", transfers.load(), sums.load());
}

// Inserts, deletes, prune and VACUUM at once: what is counted is what is there.
TEST(HeapStress, InsertsAndDeletesBalanceUnderVacuum) {
  Engine engine({.cluster = {.nodes = kNodes}});
  RelationId relation;
  load(engine, &relation, 10, 1);
  std::atomic<bool> stop{false};
  std::atomic<long> balance{10}, freed{0}, inserted{10};
  std::vector<std::thread> threads;
  for (int t = 0; t < kNodes; ++t) {
    threads.emplace_back([&, t] {
      Worker worker(engine, t);
      Heap heap(worker.txns(), relation);
      std::mt19937 random(gcl_test::seed(t + 1));
      std::vector<Tid> mine;
      while (!stop.load()) {
        worker.snapshot();
        long delta = 0;
        std::vector<Tid> next = mine;
        for (int i = 0; i < 10; ++i) {
          if (next.size() > 50 || (!next.empty() && random() % 2)) {
            size_t at = random() % next.size();
            auto gone = heap.remove(next[at], 0);
            ASSERT_TRUE(gone.ok());
            ASSERT_EQ(gone->result, RowResult::kOk);
            next.erase(next.begin() + long(at));
            --delta;
          } else {
            auto tid = heap.insert(TestRow("1").image(), 0);
            ASSERT_TRUE(tid.ok());
            // The same command must not delete it again; keep it for the next transaction.
            mine.push_back(*tid);
            inserted.fetch_add(1);
            ++delta;
          }
        }
        if (random() % 4 == 0) {
          worker.abort();
          // Everything of this transaction never was.
          std::vector<Tid> kept;
          for (Tid tid : mine) {
            auto seen = heap.satisfies(tid, worker.snapshot());
            ASSERT_TRUE(seen.ok());
            if (*seen) kept.push_back(tid);
          }
          mine = kept;
        } else {
          worker.commit();
          balance.fetch_add(delta);
          std::vector<Tid> kept;
          for (Tid tid : mine)
            if (*heap.satisfies(tid, worker.snapshot())) kept.push_back(tid);
          mine = kept;
        }
        worker->set_oldest(std::nullopt);
      }
    });
  }
  threads.emplace_back([&] {
    Worker worker(engine, 0);
    Heap heap(worker.txns(), relation);
    NoIndexes cleaner;
    while (!stop.load()) {
      auto stats = heap.vacuum(cleaner, 100);
      ASSERT_TRUE(stats.ok());
      freed.fetch_add(long(stats->freed));
      worker.commit();  // VACUUM's id would hold the status log
    }
  });
  std::this_thread::sleep_for(gcl_test::longer(std::chrono::seconds(3)));
  EXPECT_TRUE(gcl_test::eventually([&] { return freed > 0 && inserted > 200; }));
  stop.store(true);
  for (auto& thread : threads) thread.join();
  Worker worker(engine, 1);
  Heap heap(worker.txns(), relation);
  EXPECT_EQ(long(versions(heap, worker.snapshot()).size()), balance.load());
  worker->set_oldest(std::nullopt);
  NoIndexes cleaner;
  auto last = heap.vacuum(cleaner, kPatienceMs);  // before, the horizon may have passed too late each time
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->left, 0u);
  freed.fetch_add(long(last->freed));
  EXPECT_GT(freed.load(), 0);
  EXPECT_LE(freed.load(), inserted.load() - balance.load());
  printf("%ld rows inserted, %ld left, %ld line pointers freed\n", inserted.load(), balance.load(), freed.load());
}

}  // namespace engine_test
