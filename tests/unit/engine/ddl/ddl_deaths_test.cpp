// A coordinator of DDL, and then its heir, die at each access to the pool (ddl_log.one-heir).
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "tests/unit/engine/ddl/ddl_repair_fixture.hpp"

namespace gcl_test {
namespace {

// Lets operations pass one by one; then none, as of a process that is dead.  Of a WRITE there may be half.
class DyingMemory final : public coherence::Memory {
 public:
  DyingMemory(coherence::MemoryMap& map, coherence::Counters& counters, int operations)
      : shm_(map, counters), left_(operations) {}
  using Memory::post;
  void post(coherence::Batch* const* batches, int count) override {
    for (int i = 0; i < count; ++i) {
      for (int n = 0; n < batches[i]->size(); ++n) step(batches[i]->op(n));
      batches[i]->state.store(dead() ? coherence::BatchState::kUnknown : coherence::BatchState::kDone);
    }
  }
  void poll() override {}
  bool dead() const { return left_ < 0; }

 private:
  void step(coherence::Op& op) {
    if (dead()) return;
    const bool last = --left_ < 0;
    coherence::Batch one(op.at.node());
    switch (op.verb) {
      case coherence::Verb::kWrite:
        one.write(op.at, op.local, last ? op.bytes / 16 * 8 : op.bytes);
        break;
      case coherence::Verb::kRead:
        one.read(op.at, op.local, op.bytes);
        break;
      case coherence::Verb::kCas:
        one.cas(op.at, op.expect, op.operand);
        break;
      case coherence::Verb::kFaa:
        one.faa(op.at, op.operand);
        break;
      case coherence::Verb::kLoad:
        one.load(op.at);
        break;
    }
    shm_.post(one);  // done at once
    op.old = one.op(0).old;
  }
  coherence::ShmMemory shm_;
  int left_;
};

class DdlDeaths : public DdlRepairTest {
 protected:
  struct Process {  // of a node that is no member of the pool, with a memory that dies
    Process(DdlDeaths& test, NodeId self, int operations)
        : memory(coherence::MappedPool::of(test.cluster_.pool(0).coherence_pool()), counters, operations),
          channel(memory, test.cluster_.pool(0).region(bufmgr::Region::kDdl).at,
                  test.cluster_.pool(0).region(bufmgr::Region::kDdl).bytes, test.cluster_.pool(0).nodes_max(), self) {}
    coherence::Counters counters;
    DyingMemory memory;
    engine::DdlChannel channel;
  };

  void serve_all() {
    for (Participant& one : participants_)
      while (one.serve(0)) {
      }
  }
  // True if it came to its end.
  bool transaction(Process& process, bool lone) {
    Coordinator it(process.channel, DdlHolder::make(id(5), 1, 7, 77));
    const auto dead = [&] { return process.memory.dead(); };
    const auto say = [&](DdlKind kind) {
      if (!dead()) it.post(kind);
      serve_all();
      return !dead();
    };
    if (!it.begin() || dead()) return false;
    if (!lone && !say(DdlKind::kLock)) return false;
    if (!lone && !say(DdlKind::kStatement)) return false;
    it.slot.set_txn(kTxn);
    if (dead() || !say(lone ? DdlKind::kLast : DdlKind::kPrepare)) return false;
    host_.said = other_host_.said = DdlOutcome::kCommitted;
    if (!say(DdlKind::kCommit)) return false;
    it.end();
    return !dead();
  }
  // After any number of operations the coordinator dies, and after any number of its own the first heir.
  void check(int operations, int of_heir, bool lone, bool* coordinator_ends, bool* heir_ends) {
    host_.said = other_host_.said = DdlOutcome::kRolledBack;
    for (Participant& one : participants_) one.commits = one.rollbacks = 0;
    Process coordinator(*this, id(5), operations);
    *coordinator_ends = transaction(coordinator, lone);
    if (*coordinator_ends) return expect_ended();
    Process heir(*this, id(6), of_heir);
    DdlRepair first(heir.channel, 1, other_host_);
    first.take_over(NodeSet::of(id(5)));
    for (int i = 0; i < 3 && !heir.memory.dead(); ++i) {
      (void)first.tend();
      serve_all();
    }
    *heir_ends = !heir.memory.dead();
    DdlRepair second = repair(0, host_);
    if (!*heir_ends) {
      second.take_over(NodeSet::of(id(5)).with(id(6)));
      (void)second.tend();
      serve_all();
    }
    EXPECT_TRUE(second.tend());
    EXPECT_FALSE(second.names(id(5)) || second.names(id(6)));
    expect_ended();
  }
  void expect_ended() {
    const bool committed = host_.said == DdlOutcome::kCommitted;
    for (Participant& one : participants_) {
      EXPECT_FALSE(one.open());
      EXPECT_EQ(one.commits, committed ? 1 : 0);
      EXPECT_TRUE(!committed || one.rollbacks == 0);
    }
    for (int lock = 0; lock <= engine::kDdlDatabasesMax; ++lock) EXPECT_EQ(channel(0).locks().words(lock).holder, 0u);
    for (int i = 0; i < channel(0).slots(); ++i) EXPECT_FALSE(channel(0).slot(i).owner().held());
  }

  Participant participants_[2] = {{channel(0), id(0)}, {channel(1), id(1)}};
};

TEST_F(DdlDeaths, ACoordinatorDiesAtAnyMoment) {
  channel(2).leave();
  for (const bool lone : {false, true}) {
    bool ends = false, heir_ends = false;
    for (int operations = 0; !ends; ++operations) {
      SCOPED_TRACE(operations);
      check(operations, 1 << 20, lone, &ends, &heir_ends);
      ASSERT_TRUE(ends || heir_ends);
      ASSERT_FALSE(HasFailure());
      ASSERT_LT(operations, 1000);
    }
  }
}

TEST_F(DdlDeaths, AndThenItsHeirDoes) {
  channel(2).leave();
  bool ends = false;
  for (int operations = 0; !ends; operations += 3) {
    bool heir_ends = false;
    for (int of_heir = 0; !ends && !heir_ends; of_heir += 1 + of_heir / 32) {
      SCOPED_TRACE(testing::Message() << operations << ", and " << of_heir);
      check(operations, of_heir, operations % 2 == 0, &ends, &heir_ends);
      ASSERT_FALSE(HasFailure());
      ASSERT_LT(of_heir, 10000);
    }
  }
}

}  // namespace
}  // namespace gcl_test
