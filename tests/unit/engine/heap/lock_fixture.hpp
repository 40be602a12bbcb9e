// Transactions of several nodes that lock and change rows of one relation, without ever waiting.
#pragma once

#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

// What a transaction may want of a row.
enum class Want : uint8_t { kKeyShare, kShare, kNoKeyExclusive, kExclusive, kUpdate, kUpdateKey, kDelete };
inline constexpr Want kWants[] = {Want::kKeyShare, Want::kShare,     Want::kNoKeyExclusive, Want::kExclusive,
                                  Want::kUpdate,   Want::kUpdateKey, Want::kDelete};
inline constexpr bool is_lock(Want want) { return want <= Want::kExclusive; }

// PostgreSQL's table of conflicting row locks, written down again.
inline bool conflict(Want a, Want b) {
  auto strength = [](Want want) {
    return want == Want::kUpdate ? 2 : want == Want::kUpdateKey || want == Want::kDelete ? 3 : int(want);
  };
  static const char* table[] = {"...x", "..xx", ".xxx", "xxxx"};
  return table[strength(a)][strength(b)] == 'x';
}

inline std::string name(Want want) {
  static const char* names[] = {"FOR KEY SHARE", "FOR SHARE", "FOR NO KEY UPDATE", "FOR UPDATE", "UPDATE",
                                "UPDATE key",    "DELETE"};
  return names[int(want)];
}

// A session and its handle of the relation; its commands are numbered.
class Party {
 public:
  Party(Engine& engine, int node, RelationId relation) : worker(engine, node), heap(worker.txns(), relation) {}

  // What came of it, without waiting; `tid` becomes the new version's.
  RowResult attempt(Want want, Tid& tid, const std::string& text = "v") {
    ++command;
    if (is_lock(want)) {
      RowBuffer buffer;
      auto done = heap.lock({.tid = tid, .command = command, .mode = RowLock(int(want)), .policy = WaitPolicy::kSkip},
                            buffer.bytes);
      EXPECT_TRUE(done.ok());
      return done ? done->row.result : RowResult::kInvisible;
    }
    if (want == Want::kDelete) {
      auto done = heap.remove(tid, command, /*wait=*/false);
      EXPECT_TRUE(done.ok());
      return done ? done->result : RowResult::kInvisible;
    }
    TestRow row(text);
    auto done = heap.update({.tid = tid,
                             .row = row.image(),
                             .command = command,
                             .indexed_changed = want == Want::kUpdateKey,
                             .key_changed = want == Want::kUpdateKey,
                             .wait = false});
    EXPECT_TRUE(done.ok());
    if (done && done->row.result == RowResult::kOk) tid = done->tid;
    return done ? done->row.result : RowResult::kInvisible;
  }
  bool gets(Want want, Tid tid) { return attempt(want, tid) == RowResult::kOk; }
  Tid insert(const std::string& text) {
    auto tid = heap.insert(TestRow(text).image(), ++command);
    EXPECT_TRUE(tid.ok());
    return tid ? *tid : Tid{};
  }
  void commit() {
    worker.commit();
    command = 0;
  }
  void abort() {
    worker.abort();
    command = 0;
  }
  void begin_sub(int level = 2) { EXPECT_TRUE(worker->sub_begin(level).ok()); }
  void rollback_sub(int level = 2) { worker->sub_abort(level); }
  void release_sub(int level = 2) { worker->sub_commit(level); }

  Worker worker;
  Heap heap;
  uint32_t command = 0;
};

inline bool refused(RowResult result) {
  return result == RowResult::kWouldBlock || result == RowResult::kBeingModified;
}

class LockTest : public ::testing::Test {
 protected:
  LockTest() : engine_({.cluster = {.nodes = 3, .sessions_max = 96}}) {
    Worker worker(engine_, 0);
    relation_ = *Heap::create(worker.txns());
    for (int n = 0; n < 5; ++n) party_.push_back(std::make_unique<Party>(engine_, n % 3, relation_));
  }
  Party& a() { return *party_[0]; }
  Party& b() { return *party_[1]; }
  Party& c() { return *party_[2]; }
  Party& d() { return *party_[3]; }
  Party& e() { return *party_[4]; }
  Tid committed(const std::string& text = "v") {
    Tid tid = a().insert(text);
    a().commit();
    return tid;
  }
  void end_all() {
    for (auto& party : party_) party->abort();
  }

  Engine engine_;
  RelationId relation_;
  std::vector<std::unique_ptr<Party>> party_;
};

}  // namespace engine_test
