// One transaction that changes rows at random, with savepoints, and beside it others that lock them; after every
// command, what its snapshots of all commands see, against a model that keeps each version's commands.
#include <algorithm>
#include <random>

#include "tests/support/longer.hpp"
#include "tests/unit/engine/heap/lock_fixture.hpp"

namespace engine_test {

namespace {

struct MadeVersion {
  Tid tid;
  std::string text;
  int made = -1, made_level = 0;  // -1: before the transaction
  int ended = -1, ended_level = 0;
  bool seen(int command) const { return made < command && (ended < 0 || ended >= command); }
};

class CommandHistory {
 public:
  CommandHistory(Engine& engine, RelationId relation, unsigned seed)
      : random_(seed), me_(engine, 0, relation), other_(engine, 1, relation) {
    for (int i = 0; i < 12; ++i) {
      versions_.push_back({.text = fresh_text()});
      versions_.back().tid = other_.insert(versions_.back().text);
    }
    other_.commit();
  }

  void step() {
    ++command_;
    switch (random_() % 12) {
      case 0:
      case 1:
        versions_.push_back({.text = fresh_text(), .made = command_, .made_level = level_});
        versions_.back().tid = insert(versions_.back().text);
        break;
      case 2:
      case 3:
        if (MadeVersion* version = pick()) {
          other_.abort();  // FOR KEY SHARE would be in the way
          ASSERT_EQ(me_.heap.remove(version->tid, command_, false)->result, RowResult::kOk);
          end(*version);
        }
        break;
      case 4:
        if (level_ < 4) {
          ASSERT_TRUE(me_.worker->sub_begin(++level_).ok());
        }
        break;
      case 5:
        if (level_ > 1) release();
        break;
      case 6:
        if (level_ > 1) roll_back();
        break;
      case 7:
        other_.abort();
        if (MadeVersion* version = pick()) {
          ASSERT_TRUE(locks(me_, version->tid, RowLock::kExclusive));
        }
        break;
      case 8:
        ASSERT_TRUE(me_.heap.prune(versions_[random_() % versions_.size()].tid.block).ok());
        break;
      case 9:
        lock_beside();
        break;
      default:
        if (MadeVersion* version = pick()) update(*version);
    }
  }

  void check(bool all) {
    for (int command = all ? 0 : std::max(0, command_ - 3); command <= command_ + 1; ++command) {
      std::vector<std::string> expected;
      for (const MadeVersion& version : versions_)
        if (version.seen(command)) expected.push_back(version.text);
      auto found = scan_all(me_.heap, me_.worker.snapshot(uint32_t(command)));
      std::sort(expected.begin(), expected.end());
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, expected) << "at " << command << " of " << command_;
    }
    const MadeVersion& version = versions_[random_() % versions_.size()];
    const int command = int(random_() % unsigned(command_ + 2));
    RowBuffer buffer;
    auto read = me_.heap.fetch(version.tid, me_.worker.snapshot(uint32_t(command)), buffer.bytes);
    ASSERT_EQ(read->found, version.seen(command)) << version.made << ".." << version.ended << " at " << command;
    if (version.ended >= 0) refuses(version, command);
  }

  void finish(bool commit) {
    if (commit) {
      me_.commit();
    } else {
      level_ = 0;
      forget(0);
      me_.abort();
    }
    other_.abort();
    std::vector<std::string> expected;
    for (const MadeVersion& version : versions_)
      if (version.ended < 0) expected.push_back(version.text);
    auto found = scan_all(other_.heap, other_.worker.snapshot());
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found, expected);
  }

  int far = 0, near = 0;  // updates

 private:
  std::string fresh_text() { return std::to_string(++texts_) + std::string(200 + random_() % 1500, 'x'); }
  MadeVersion* pick() {
    std::vector<MadeVersion*> live;
    for (MadeVersion& version : versions_)
      if (version.ended < 0) live.push_back(&version);
    return live.empty() ? nullptr : live[random_() % live.size()];
  }
  Tid insert(const std::string& text) { return *me_.heap.insert(TestRow(text).image(), uint32_t(command_)); }
  void end(MadeVersion& version) { version.ended = command_, version.ended_level = level_; }
  void update(MadeVersion& version) {
    const Tid old = version.tid;
    TestRow row(fresh_text());
    auto done = me_.heap.update({.tid = old,
                                 .row = row.image(),
                                 .command = uint32_t(command_),
                                 .indexed_changed = random_() % 2 == 0,
                                 .wait = false});
    ASSERT_TRUE(done.ok());
    ASSERT_EQ(done->row.result, RowResult::kOk);
    end(version);
    ++(done->tid.block == old.block ? near : far);
    versions_.push_back({.tid = done->tid, .text = row.body.substr(1), .made = command_, .made_level = level_});
  }
  bool locks(Party& party, Tid tid, RowLock mode) {
    RowBuffer buffer;
    auto done = party.heap.lock({.tid = tid, .command = uint32_t(command_), .mode = mode, .policy = WaitPolicy::kSkip},
                                buffer.bytes);
    EXPECT_TRUE(done.ok());
    return done->row.result == RowResult::kOk;
  }
  // Another session's FOR KEY SHARE of a row from before, whatever comes of it; it goes along to newer versions.
  void lock_beside() {
    const MadeVersion& version = versions_[random_() % 12];
    if (version.made < 0) (void)locks(other_, version.tid, RowLock::kKeyShare);
    if (random_() % 4 == 0) other_.abort();
  }
  void refuses(const MadeVersion& version, int command) {
    auto done = me_.heap.remove(version.tid, uint32_t(command), false);
    const bool modified = version.made < command && version.ended >= command;
    ASSERT_EQ(done->result, modified ? RowResult::kSelfModified : RowResult::kInvisible);
    if (modified) {
      ASSERT_EQ(done->conflict.cmax, uint32_t(version.ended));
    }
  }
  void release() {
    me_.worker->sub_commit(level_--);
    for (MadeVersion& version : versions_) {
      version.made_level = std::min(version.made_level, level_);
      version.ended_level = std::min(version.ended_level, level_);
    }
  }
  void roll_back() {
    me_.worker->sub_abort(level_);
    forget(level_--);
  }
  void forget(int from_level) {
    std::erase_if(versions_, [&](const MadeVersion& v) { return v.made >= 0 && v.made_level >= from_level; });
    for (MadeVersion& version : versions_)
      if (version.ended >= 0 && version.ended_level >= from_level) version.ended = -1;
  }

  std::mt19937 random_;
  Party me_, other_;
  std::vector<MadeVersion> versions_;
  int command_ = 0, level_ = 1, texts_ = 0;
};

}  // namespace

TEST(CommandHistory, EverySnapshotSeesWhatWasThereAtItsCommand) {
  int far = 0, near = 0;
  for (int round = 0; round < gcl_test::by_one_thread(24 * gcl_test::longer()) && !::testing::Test::HasFatalFailure();
       ++round) {
    SCOPED_TRACE(round);
    Engine engine({.cluster = {.nodes = 2}});
    RelationId relation;
    {
      Worker worker(engine, 0);
      relation = *Heap::create(worker.txns());
    }
    CommandHistory model(engine, relation, gcl_test::seed(round));
    for (int i = 0; i < 120 && !::testing::Test::HasFatalFailure(); ++i) {
      model.step();
      if (!::testing::Test::HasFatalFailure()) model.check(i % 20 == 19);
    }
    if (!::testing::Test::HasFatalFailure()) model.finish(round % 2 == 0);
    far += model.far;
    near += model.near;
  }
  EXPECT_GT(far, gcl_test::by_one_thread(100));
  EXPECT_GT(near, gcl_test::by_one_thread(100));
}

}  // namespace engine_test
