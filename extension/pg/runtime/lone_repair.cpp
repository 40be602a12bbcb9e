#include "extension/pg/runtime/lone_repair.hpp"

#include <new>

#include "extension/engine/ddl/ddl_repair.hpp"
#include "extension/engine/txn/leftovers.hpp"
#include "extension/pg/boundary/pg.hpp"
#include "extension/pg/runtime/journal.hpp"

namespace gcl {
namespace {

using coherence::Memory;
using coherence::NodeSet;
using coherence::Pool;
using coherence::Status;

bufmgr::RegionSpan region(const Pool& pool, bufmgr::Region which) {
  const auto extent = pool.region(int(which));
  return {extent.at, extent.bytes};
}

// Nobody is there to be told.
class Outcomes final : public engine::DdlRepairHost {
 public:
  Outcomes(Memory& memory, const engine::TxnWords& words) : memory_(memory), words_(words) {}
  engine::DdlOutcome outcome(uint64_t txn) noexcept override {
    const engine::TxnId id{txn};
    if (id.node().value >= words_.nodes()) return engine::DdlOutcome::kUndecided;
    coherence::Batch batch(words_.clock().node());
    const int word = batch.load(words_.status(id));
    const int low = batch.load(words_.low_water(id.node()));  // behind the word: txn.mark-before-clearing
    if (!memory_.run(batch) || id.sequence() <= batch.op(low).old) return engine::DdlOutcome::kUndecided;
    switch (engine::StatusWord{batch.op(word).old}.state()) {
      case engine::TxnState::kCommitted:
        return engine::DdlOutcome::kCommitted;
      case engine::TxnState::kAborted:
        return engine::DdlOutcome::kRolledBack;
      default:
        return engine::DdlOutcome::kUndecided;
    }
  }
  void posted(int, NodeSet) noexcept override {}
  void freed() noexcept override {}

 private:
  Memory& memory_;
  const engine::TxnWords& words_;
};

// repair.recorded-first.  Perhaps once more, after a process died that had done so.
Status record(Pool& pool, Memory& memory, const engine::TxnWords& words, const coherence::PoolRepair::Dead& dead,
              coherence::Problem* problem) {
  if (pool.durable_path() == nullptr) return {};
  const bufmgr::RegionSpan ring = bufmgr::BufferPool::ring_of(pool, dead.node);
  const auto redo = recovery::RingIndex::read(memory, ring.at, ring.bytes, dead.incarnation, problem);
  if (!redo) return redo.error();
  try {
    const auto found = engine::Leftovers(memory, words, dead.node).verdicts();
    if (!found) return problem->set(found.error(), "the words of node %u cannot be read", dead.node.value);
    return recovery::note_death(pool, dead.node, dead.incarnation, **redo, to_journal(*found),
                                recovery::Patience::kWait, problem);
  } catch (const std::bad_alloc&) {
    return problem->set(coherence::Errc::kNoMemory, "no memory to record the death of node %u", dead.node.value);
  }
}

Status end_transactions(Memory& memory, const engine::TxnWords& words, coherence::NodeId dead) {
  try {
    const auto ended = engine::Leftovers(memory, words, dead).end([] { return true; });
    return ended ? Status() : Status(ended.error());
  } catch (const std::bad_alloc&) {
    return coherence::Errc::kNoMemory;
  }
}

}  // namespace

Status ServerLoneRepair::repair(Pool& pool, Memory& memory, std::span<const Dead> dead,
                                coherence::Problem* problem) noexcept {
  ereport(LOG, errmsg("gcl: all primaries of the pool are dead; node %d repairs it alone", int(self_.value)));
  const engine::TxnWords words(region(pool, bufmgr::Region::kTxnWords), region(pool, bufmgr::Region::kStatusLog),
                               pool.nodes_max(), ~uint32_t{0});
  for (const Dead& one : dead) GCL_TRY(record(pool, memory, words, one, problem));
  GCL_TRY(recovery::LoneRepair().repair(pool, memory, dead, problem));
  for (const Dead& one : dead)
    if (const auto ended = end_transactions(memory, words, one.node); !ended)
      return problem->set(ended.error(), "the transactions of node %d cannot be ended", int(one.node.value));
  NodeSet all;  // also what a process has left that began to repair alone, and was no node
  for (uint32_t n = 0; n < pool.nodes_max(); ++n) all = all.with({uint8_t(n)});
  const bufmgr::RegionSpan ddl = region(pool, bufmgr::Region::kDdl);
  engine::DdlChannel channel(memory, ddl.at, ddl.bytes, pool.nodes_max(), self_);
  Outcomes outcomes(memory, words);
  engine::DdlRepair repair(channel, 0, outcomes);
  repair.take_over(all);
  (void)repair.tend();  // nobody has to deal with it, so once is enough
  if (channel.lost()) return problem->set(coherence::Errc::kFenced, "the DDL channel cannot be read");
  return {};
}

}  // namespace gcl
