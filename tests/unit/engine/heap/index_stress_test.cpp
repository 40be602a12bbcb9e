// Rows found through an index (here a map of keys to Tids, kept as PostgreSQL keeps one): under updates that move rows,
// prune, VACUUM, few frames and a short status log, every snapshot finds every key exactly once.
#include <map>
#include <random>
#include <set>

#include "tests/support/longer.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

namespace {

constexpr int kKeys = 40;

class Index final : public IndexCleaner {
 public:
  void add(int key, Tid tid) {
    std::lock_guard hold(mutex_);
    entries_[key].insert(tid);
  }
  std::vector<Tid> find(int key) {
    std::lock_guard hold(mutex_);
    return {entries_[key].begin(), entries_[key].end()};
  }
  coherence::Status remove(std::span<const Tid> dead) override {
    std::lock_guard hold(mutex_);
    for (auto& [key, tids] : entries_)
      std::erase_if(tids, [&](Tid tid) { return std::binary_search(dead.begin(), dead.end(), tid); });
    return {};
  }

 private:
  std::mutex mutex_;
  std::map<int, std::set<Tid>> entries_;
};

std::string row_text(int key, long value, size_t padding) {
  return std::to_string(key) + ":" + std::to_string(value) + ":" + std::string(padding, 'p');
}

// The version of `key` that the snapshot sees; counts how many.
int look_up(Heap& heap, Index& index, int key, const Snapshot& snapshot, RowBuffer& buffer, RowRead* found) {
  int count = 0;
  for (Tid root : index.find(key)) {
    RowBuffer copy;
    auto read = heap.fetch_chain(root, snapshot, copy.bytes);
    EXPECT_TRUE(read.ok());
    if (!read || !read->found || std::stoi(copy.text(read->bytes)) != key) continue;
    if (count++ == 0 || read->tid != found->tid) {
      *found = *read;
      std::memcpy(buffer.bytes, copy.bytes, read->bytes);
    } else {
      --count;  // two entries lead to one version
    }
  }
  return count;
}

// What may hold the horizon and the status logs, when an id is refused.
std::string state_of(Engine& engine) {
  std::string text;
  for (int n = 0; n < engine.nodes(); ++n) {
    TxnShared& shared = engine.shared(n);
    text += "\nnode " + std::to_string(n) + ": next " + std::to_string(shared.next) + ", low-water mark " +
            std::to_string(shared.low_water) + ", bound " + std::to_string(shared.bound) + ", horizon " +
            std::to_string(shared.horizon) + ", oldest";
    for (uint32_t i = 0; i < shared.sessions; ++i)
      if (shared.slot(i).oldest != 0) text += " " + std::to_string(i) + ":" + std::to_string(shared.slot(i).oldest);
  }
  return text;
}

}  // namespace

TEST(IndexStress, EverySnapshotFindsEveryKeyOnce) {
  Engine engine({.cluster = {.nodes = kNodes, .frames = 64, .ring_bytes = 256 << 10}, .slots_max = 512});
  Index index;
  RelationId relation;
  {
    Worker worker(engine, 0);
    relation = *Heap::create(worker.txns());
    Heap heap(worker.txns(), relation);
    for (int key = 0; key < kKeys; ++key) index.add(key, *heap.insert(TestRow(row_text(key, 0, 50)).image(), 0));
    worker.commit();
  }
  std::atomic<bool> stop{false};
  std::atomic<long> updates{0}, moved{0}, looked{0}, freed{0};
  std::vector<std::atomic<long>> values(kKeys);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2 * kNodes; ++t) {
    threads.emplace_back([&, t] {
      Worker worker(engine, t % kNodes);
      worker.waiter().timeout_ms = 200;
      Heap heap(worker.txns(), relation);
      std::mt19937 random(gcl_test::seed(t + 7));
      RowBuffer buffer;
      while (!stop.load()) {
        auto snapshot = worker.snapshot();
        if (t >= kNodes) {
          for (int i = 0; i < kKeys; ++i) {
            RowRead found;
            ASSERT_EQ(look_up(heap, index, i, snapshot, buffer, &found), 1) << "key " << i;
            looked.fetch_add(1);
          }
          worker->set_oldest(std::nullopt);
          continue;
        }
        bool good = true;
        std::map<int, long> added;
        for (uint32_t command = 0; command < 3 && good; ++command) {
          int key = int(random() % kKeys);
          snapshot = worker.snapshot(command);  // READ COMMITTED: one per command
          RowRead found;
          ASSERT_EQ(look_up(heap, index, key, snapshot, buffer, &found), 1) << "key " << key << " command " << command;
          auto locked = heap.lock({.tid = found.tid, .command = command, .follow = true}, buffer.bytes);
          if (!locked) {
            ASSERT_EQ(locked.error(), Errc::kInterrupted);
            good = false;
            break;
          }
          if (locked->row.result == RowResult::kSelfModified || locked->row.result == RowResult::kInvisible) continue;
          ASSERT_EQ(locked->row.result, RowResult::kOk);
          std::string text = buffer.text(locked->bytes);
          ASSERT_EQ(std::stoi(text), key);
          long value = std::stol(text.substr(text.find(':') + 1));
          bool indexed = random() % 4 == 0;
          bool savepoint = random() % 5 == 0;
          if (savepoint) {
            EXPECT_TRUE(worker->sub_begin(2).ok());
          }
          TestRow row(row_text(key, value + 1, random() % 400));
          auto done =
              heap.update({.tid = locked->tid, .row = row.image(), .command = command, .indexed_changed = indexed});
          ASSERT_TRUE(done.ok()) << coherence::errc_name(done.error()) << state_of(engine);
          ASSERT_EQ(done->row.result, RowResult::kOk);
          if (!done->chained) index.add(key, done->tid);
          moved.fetch_add(!done->chained);
          if (savepoint) {
            worker->sub_abort(2);
          } else {
            ++added[key];
          }
        }
        if (good && random() % 6 != 0) {
          worker.commit();
          updates.fetch_add(1);
          for (auto [key, count] : added) values[size_t(key)].fetch_add(count);
        } else {
          worker.abort();
        }
      }
    });
  }
  threads.emplace_back([&] {
    Worker worker(engine, 1);
    Heap heap(worker.txns(), relation);
    while (!stop.load()) {
      auto stats = heap.vacuum(index, 200);
      ASSERT_TRUE(stats.ok());
      worker.commit();  // VACUUM's id would hold the status log
      freed.fetch_add(long(stats->freed));
    }
  });
  std::this_thread::sleep_for(gcl_test::longer(std::chrono::seconds(4)));
  EXPECT_TRUE(gcl_test::eventually([&] { return freed > 0 && updates > 50 && moved > 10 && looked > kKeys; }));
  stop.store(true);
  for (auto& thread : threads) thread.join();
  Worker worker(engine, 2);
  Heap heap(worker.txns(), relation);
  auto snapshot = worker.snapshot();
  for (int key = 0; key < kKeys; ++key) {
    RowBuffer buffer;
    RowRead found;
    ASSERT_EQ(look_up(heap, index, key, snapshot, buffer, &found), 1);
    std::string text = buffer.text(found.bytes);
    EXPECT_EQ(std::stol(text.substr(text.find(':') + 1)), values[size_t(key)].load()) << "key " << key;
  }
  EXPECT_EQ(scan_all(heap, snapshot).size(), size_t(kKeys));
  worker->set_oldest(std::nullopt);
  auto last = heap.vacuum(index, kPatienceMs);  // with busy CPUs no round before may have seen the horizon pass in time
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->left, 0u);
  EXPECT_GT(freed.load() + long(last->freed), 0);
  printf("%ld updates, %ld moved, %ld look-ups, %ld line pointers freed, %u blocks\n", updates.load(), moved.load(),
         looked.load(), freed.load(), *heap.used_blocks());
}

}  // namespace engine_test
