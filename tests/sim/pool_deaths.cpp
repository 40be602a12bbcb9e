// Where nodes of buffer pools die, and what is under way then.
#include <algorithm>

#include "bufmgr/log/redo_ring.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/transport/memory.hpp"
#include "pool_cluster.hpp"

namespace sim {
namespace {

constexpr uint32_t kYieldsUntilNext = 3'000;  // between two deaths of many
constexpr uint64_t kCheckpointsSoon = 4;      // then they are made less and less often

bool names_dead(LatchWord word) {
  const auto dead = [](NodeId node) { return scheduler()->crashed(node.value); };
  if (word.has_owner() && dead(word.owner())) return true;
  for (NodeSet left = word.readers(); !left.empty(); left = left.without(left.first()))
    if (dead(left.first())) return true;
  return false;
}

FaultPoint of_word(const Op& op) {
  switch (op.verb) {
    case Verb::kCas:
      return names_dead(LatchWord{op.expect}) ? FaultPoint::kTakeOver : FaultPoint::kAcquireWord;
    case Verb::kFaa:
      return FaultPoint::kReleaseWord;
    case Verb::kLoad:
      return FaultPoint::kLoadWord;
    case Verb::kRead:
      return FaultPoint::kReadWords;
    case Verb::kWrite:
      break;
  }
  return FaultPoint::kElsewhere;
}

// `at`: an offset in the arena.
FaultPoint of_arena(const ArenaLayout& layout, const bufmgr::ArenaPlan& plan, uint64_t at) {
  if (at < layout.sessions_at) return FaultPoint::kInbox;
  if (at < layout.parked_at) return FaultPoint::kSlot;
  if (at < layout.lines_at) return FaultPoint::kParked;
  if (at < layout.frames_at) return FaultPoint::kLine;
  if (at < layout.private_at) return FaultPoint::kFrame;
  at -= layout.private_at;
  if (at < plan.counts) return FaultPoint::kRingWords;
  if (at < plan.announcements) return FaultPoint::kProcess;
  if (at < plan.table) return FaultPoint::kAnnouncement;
  if (at < plan.free) return FaultPoint::kFrameTable;
  if (at < plan.marks) return FaultPoint::kFreeList;
  if (at < plan.dirty) return FaultPoint::kMarks;
  return at < plan.redo ? FaultPoint::kDirty : FaultPoint::kCopy;
}

// Whether `at` is in there.
bool is_within(const volatile void* at, const void* from, uint64_t bytes) {
  const auto a = reinterpret_cast<uintptr_t>(at), b = reinterpret_cast<uintptr_t>(from);
  return a >= b && a < b + bytes;
}

}  // namespace

FaultPoint PoolCluster::point_of(const volatile void* at) const {
  for (const auto& m : members_) {
    if (!m->pool) continue;
    const ArenaHeader& arena = *m->node().parts().arena;
    if (is_within(at, &arena, arena.layout.bytes))
      return of_arena(arena.layout, plan_of(*m),
                      uint64_t(reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(&arena)));
    const MappedPool& pool = MappedPool::of(m->pool->coherence_pool());
    if (is_within(at, &pool.table(), sizeof(NodeTable)) || is_within(at, &pool.header(), sizeof(PoolHeader)))
      return FaultPoint::kNodeTable;
  }
  return FaultPoint::kProcess;
}

FaultPoint PoolCluster::point_of(const Batch& batch, int number) const {
  const Op& op = batch.op(number);
  const bufmgr::BufferPool& pool = *members_[0]->pool;
  for (const auto& m : members_) {
    const bufmgr::RegionSpan ring = pool.ring_of(m->id);
    if (op.at.node() != ring.at.node() || op.at.offset() < ring.at.offset() ||
        op.at.offset() >= ring.at.offset() + ring.bytes)
      continue;
    if (op.verb != Verb::kWrite) return FaultPoint::kReadRing;
    return op.at.offset() < ring.at.offset() + bufmgr::kRingHeaderBytes ? FaultPoint::kRingTail
                                                                        : FaultPoint::kWriteRing;
  }
  const auto places = members_[0]->pool->coherence_pool().places(op.at.node());
  if (!places) return FaultPoint::kElsewhere;
  const uint64_t at = op.at.offset(), pages = places->pages_at.offset(), words = places->words_at.offset();
  if (at >= pages && at < pages + places->pages * kPageSize) {
    if (op.verb != Verb::kWrite) return FaultPoint::kReadPage;
    return number > 0 && batch.op(number - 1).verb == Verb::kWrite ? FaultPoint::kTornPage : FaultPoint::kWritePage;
  }
  return at >= words && at < pages ? of_word(op) : FaultPoint::kElsewhere;
}

Phases PoolCluster::phases() const {
  Phases all = disk_.is_making() ? only(Phase::kCheckpoint) : Phases{0};
  for (int n = 0; n < options_.nodes; n++)
    if (crashed(n) && !withdrawn(n)) all |= only(Phase::kRepair);
  return all != 0 ? all : only(Phase::kWork);
}

// When the first one is dead: the second one is to die at the point, if the first was not.  When that has been, all but
// one die there, or else soon.
void PoolCluster::arm_others() {
  const int nodes = options_.nodes, first = options_.crash_node;
  if (options_.dies_second() && deaths_.nodes == 1) return scheduler()->crash_at((first + 1) % nodes, options_.target);
  if (!options_.most_die || deaths_.nodes > 1u + options_.dies_second()) return;
  Random chance(Random::mix(options_.seed ^ 0xa11));
  for (int i = 1; i < nodes - 1; i++) {
    const int n = (first + i) % nodes;
    if (crashed(n)) continue;
    CrashTarget target = options_.target;
    target.skip = uint32_t(chance.below(target.skip + 1));
    scheduler()->crash_at(n, target);
    scheduler()->crash_soon(n, chance.between(1, kYieldsUntilNext));
  }
}

std::vector<PoolDisk::NodeLog> PoolCluster::logs_of_all() {
  std::vector<PoolDisk::NodeLog> logs;
  for (auto& m : members_) logs.push_back(log_of(*m));
  return logs;
}

// A process that belongs to no node, as gclctl's; it may die, too.
void PoolCluster::make_checkpoints() {
  Random chance(Random::mix(options_.seed ^ 0xc4ec));
  for (uint64_t made = 0; !closing_; made++) {
    const uint64_t soon = options_.target.phase == Phase::kCheckpoint ? 8 * kCheckpointsSoon : kCheckpointsSoon;
    scheduler()->sleep(chance.between(20 * kUs, 1'000 * kUs) * (1 + made / soon));
    if (!options_.survives && fenced()) return;
    disk_.begin_checkpoint();
    CheckpointStep last{};
    if (make_checkpoint(chance, &last))
      disk_.end_checkpoint();
    else
      disk_.kill_checkpoint(last);
  }
}

// False: its process died behind the step `last`.
bool PoolCluster::make_checkpoint(Random& chance, CheckpointStep* last) {
  constexpr int kSteps = int(CheckpointStep::kCount);
  const uint64_t pause_ns_max = chance.between(2, options_.target.phase == Phase::kCheckpoint ? 600 : 200) * kUs;
  const int dies_behind = chance.one_in(3) ? int(chance.below(kSteps)) : kSteps;
  std::vector<uint64_t> holes;
  for (auto& m : members_) {
    scheduler()->sleep(chance.below(pause_ns_max));
    Scheduler::Calm calm(*scheduler());
    holes.push_back(log_of(*m).hole);
  }
  for (int step = 0; step < kSteps; step++) {
    *last = CheckpointStep(step);
    {
      Scheduler::Calm calm(*scheduler());
      disk_.make(*last, logs_of_all(), holes, chance);
    }
    if (step == dies_behind) return false;
    scheduler()->sleep(chance.below(pause_ns_max));
  }
  return true;
}

}  // namespace sim
