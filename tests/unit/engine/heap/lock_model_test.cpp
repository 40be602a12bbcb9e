// Random transactions on a few rows, against a model that knows nothing but PostgreSQL's table of conflicting locks.
#include <map>
#include <random>

#include "tests/support/longer.hpp"
#include "tests/unit/engine/heap/lock_fixture.hpp"

namespace engine_test {

namespace {

constexpr int kParties = 7, kRows = 4;

// A row as the model sees it: what was done to it, by which party, at which level, and not ended.
struct ModelRow {
  Tid committed;
  struct Done {
    int party, level;
    Want want;
    Tid made;  // updates: the new version
  };
  std::vector<Done> done;

  bool refuses(int party, Want want) const {
    for (const Done& d : done)
      if (d.party != party && conflict(d.want, want)) return true;
    return false;
  }
  // The version that `party` works on: its own newest, or the committed one.
  Tid version_for(int party) const {
    Tid tid = committed;
    for (const Done& d : done)
      if (d.party == party && d.made.valid()) tid = d.made;
    return tid;
  }
  bool deleted_by(int party) const {
    for (const Done& d : done)
      if (d.party == party && d.want == Want::kDelete) return true;
    return false;
  }
  void forget(int party, int from_level) {
    std::erase_if(done, [&](const Done& d) { return d.party == party && d.level >= from_level; });
  }
};

class Model {
 public:
  explicit Model(unsigned seed) : random_(seed), engine_({.cluster = {.nodes = 3}}) {
    Worker worker(engine_, 0);
    relation_ = *Heap::create(worker.txns());
    for (int p = 0; p < kParties; ++p) party_.push_back(std::make_unique<Party>(engine_, p % 3, relation_));
    for (ModelRow& row : rows_) renew(row);
  }

  void step() {
    int p = int(random_() % kParties);
    Party& party = *party_[p];
    switch (random_() % 16) {
      case 0:
        return end(p, true);
      case 1:
        return end(p, false);
      case 2:
        if (level_[p] == 1) {
          party.begin_sub();
          level_[p] = 2;
        } else if (random_() % 2) {
          party.rollback_sub();
          for (ModelRow& row : rows_) row.forget(p, 2);
          level_[p] = 1;
        } else {
          party.release_sub();
          for (ModelRow& row : rows_)
            for (auto& d : row.done)
              if (d.party == p) d.level = 1;
          level_[p] = 1;
        }
        return;
      case 3:
        EXPECT_TRUE(party.heap.prune(rows_[random_() % kRows].committed.block).ok());
        return;
      default:
        return act(p, rows_[random_() % kRows], kWants[random_() % 7]);
    }
  }
  int granted = 0, refused_count = 0;

 private:
  void act(int p, ModelRow& row, Want want) {
    if (row.deleted_by(p)) return;
    if (want == Want::kDelete && random_() % 3) want = Want::kKeyShare;
    Tid tid = row.version_for(p), before = tid;
    RowResult result = party_[p]->attempt(want, tid);
    if (row.refuses(p, want)) {
      ++refused_count;
      ASSERT_TRUE(refused(result)) << name(want) << " gave " << int(result);
      return;
    }
    ++granted;
    ASSERT_EQ(result, RowResult::kOk) << name(want);
    row.done.push_back({p, level_[p], want, tid == before ? Tid{} : tid});
  }

  void end(int p, bool commit) {
    commit ? party_[p]->commit() : party_[p]->abort();
    level_[p] = 1;
    for (ModelRow& row : rows_) {
      bool gone = commit && row.deleted_by(p);
      if (commit) row.committed = row.version_for(p);
      row.forget(p, 1);
      if (gone) {
        ASSERT_TRUE(row.done.empty());
        renew(row);
      }
    }
  }

  // By a transaction of its own.
  void renew(ModelRow& row) {
    Party writer(engine_, 0, relation_);
    row.committed = writer.insert("v");
    writer.commit();
  }

  std::mt19937 random_;
  Engine engine_;
  RelationId relation_;
  std::vector<std::unique_ptr<Party>> party_;
  int level_[kParties] = {1, 1, 1, 1, 1, 1, 1};
  ModelRow rows_[kRows];
};

}  // namespace

TEST(LockModel, RandomTransactionsGetExactlyWhatTheModelSays) {
  for (unsigned seed = 1; seed <= gcl_test::by_one_thread(5u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed);
    for (int i = 0; i < 8000 && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      model.step();
    }
    if (::testing::Test::HasFailure()) return;
    EXPECT_GT(model.granted, 500);
    EXPECT_GT(model.refused_count, 500);
  }
}

}  // namespace engine_test
