// Parents and children of a foreign key, as its triggers would check it, from all nodes at once.
#include <random>

#include "tests/unit/engine/heap/lock_fixture.hpp"

namespace engine_test {

namespace {

constexpr int kParents = 12;

struct Found {
  Tid tid;
  int key;
};

// All rows that the snapshot sees; their text is "key" or "key:anything".
std::vector<Found> look(Heap& heap, const Snapshot& snapshot) {
  std::vector<Found> found;
  for (const FoundRow& row : scan_rows(heap, snapshot)) found.push_back({row.tid, std::stoi(row.text)});
  return found;
}

std::optional<Tid> find(Heap& heap, const Snapshot& snapshot, int key) {
  for (const Found& row : look(heap, snapshot))
    if (row.key == key) return row.tid;
  return std::nullopt;
}

struct Counts {
  std::atomic<int> children{0}, refused{0}, deleted{0}, updated{0}, gave_up{0};
};

// One party: inserts children, deletes parents without children, updates parents beside all of that.
class Family {
 public:
  Family(Engine& engine, int node, RelationId parents, RelationId children, Counts& counts, unsigned seed)
      : worker_(engine, node),
        parents_(worker_.txns(), parents),
        children_(worker_.txns(), children),
        counts_(counts),
        random_(seed) {
    worker_.waiter().timeout_ms = 100;  // deadlocks
  }

  void turn() {
    int key = int(random_() % kParents);
    unsigned what = random_() % 8;
    bool done = what < 3 ? bear(key) : what < 5 ? bury(key) : what < 7 ? touch(key) : give(key);
    // Others come meanwhile.
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1500));
    if (done && random_() % 8 != 0)
      worker_.commit();
    else
      worker_.abort();
  }

 private:
  std::optional<Tid> locked(int key, RowLock mode) {
    auto tid = find(parents_, worker_.snapshot(), key);
    if (!tid) return std::nullopt;
    RowBuffer buffer;
    auto lock = parents_.lock({.tid = *tid, .command = 0, .mode = mode, .follow = true}, buffer.bytes);
    if (!lock) {
      EXPECT_EQ(lock.error(), Errc::kInterrupted);
      counts_.gave_up.fetch_add(1);
      return std::nullopt;
    }
    if (lock->row.result != RowResult::kOk) return std::nullopt;
    return lock->tid;
  }
  bool bear(int key) {
    if (!locked(key, RowLock::kKeyShare)) return false;
    for (int i = 0; i < 2; ++i) {
      if (!children_.insert(TestRow(std::to_string(key)).image(), 1).ok()) return false;
    }
    counts_.children.fetch_add(1);
    return true;
  }
  bool bury(int key) {
    auto tid = locked(key, RowLock::kExclusive);
    if (!tid) return false;
    auto gone = parents_.remove(*tid, 1);
    EXPECT_TRUE(gone.ok());
    EXPECT_EQ(gone->result, RowResult::kOk);
    if (find(children_, worker_.snapshot(2), key)) {
      counts_.refused.fetch_add(1);
      return false;
    }
    counts_.deleted.fetch_add(1);
    return true;
  }
  bool touch(int key) {
    auto tid = locked(key, RowLock::kNoKeyExclusive);
    if (!tid) return false;
    TestRow row(std::to_string(key) + ":" + std::string(random_() % 200, 'x'));
    auto done = parents_.update({.tid = *tid, .row = row.image(), .command = 1, .indexed_changed = false});
    if (!done) {
      EXPECT_EQ(done.error(), Errc::kInterrupted);
      return false;
    }
    EXPECT_EQ(done->row.result, RowResult::kOk);
    counts_.updated.fetch_add(1);
    return true;
  }
  // Children leave, so that parents may.
  bool give(int key) {
    for (const Found& child : look(children_, worker_.snapshot())) {
      if (child.key != key) continue;
      auto gone = children_.remove(child.tid, 0);
      if (!gone) return false;
    }
    return true;
  }

  Worker worker_;
  Heap parents_, children_;
  Counts& counts_;
  std::mt19937 random_;
};

}  // namespace

TEST(LockStress, NoChildOutlivesItsParent) {
  Engine engine({.cluster = {.nodes = kNodes}});
  Worker first(engine, 0);
  RelationId parents = *Heap::create(first.txns()), children = *Heap::create(first.txns());
  Heap parent_heap(first.txns(), parents), child_heap(first.txns(), children);
  Counts counts;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2 * kNodes; ++t) {
    threads.emplace_back([&, t] {
      Family family(engine, t % kNodes, parents, children, counts, unsigned(t) + 1);
      while (!stop.load()) family.turn();
    });
  }
  int looks = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  const auto going_on = [&] {
    const bool enough = looks > 5 && counts.children > 20 && counts.deleted > 5 && counts.updated > 5;
    const auto now = std::chrono::steady_clock::now();
    return now < until || (!enough && now < until + std::chrono::milliseconds(kPatienceMs));
  };
  while (going_on() && !::testing::Test::HasFailure()) {
    // Parents come back, and the books are checked, while the others work.
    auto snapshot = first.snapshot();
    std::vector<Found> there = look(parent_heap, snapshot);
    bool has[kParents] = {};
    for (const Found& row : there) {
      EXPECT_FALSE(has[row.key]);
      has[row.key] = true;
    }
    for (const Found& child : look(child_heap, snapshot)) EXPECT_TRUE(has[child.key]) << "an orphan of " << child.key;
    ++looks;
    for (int key = 0; key < kParents; ++key) {
      if (has[key]) continue;
      EXPECT_TRUE(parent_heap.insert(TestRow(std::to_string(key)).image(), 0).ok());
    }
    first.commit();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  stop.store(true);
  for (auto& thread : threads) thread.join();
  EXPECT_GT(looks, 5);
  EXPECT_GT(counts.children.load(), 20);
  EXPECT_GT(counts.deleted.load(), 5);
  EXPECT_GT(counts.updated.load(), 5);
  printf("%d births, %d parents deleted, %d not, %d updated, %d waits given up, %d looks\n", counts.children.load(),
         counts.deleted.load(), counts.refused.load(), counts.updated.load(), counts.gave_up.load(), looks);
}

}  // namespace engine_test
