// Buffer pools whose nodes die: what the system does then, the product's repair out of rings, and its sweep.
#include <algorithm>

#include "bufmgr/log/redo_ring.hpp"
#include "bufmgr/mini_transaction.hpp"
#include "coherence/latch/latch_word.hpp"
#include "pool_cluster.hpp"
#include "tests/support/pool_bytes.hpp"

namespace sim {
Result<bool> PoolRedo::repair(PageId id, std::byte* page, NodeSet dead, Memory& memory, Problem* problem) noexcept {
  if (crashes_-- > 0) scheduler()->crash_soon(scheduler()->node(), scheduler()->random().between(1, 6));
  if (mutation == Mutation::kRedoForgotten) return false;
  if (mutation == Mutation::kOneRedo) dead = NodeSet::of(dead.first());
  return rings.repair(id, page, dead, memory, problem);
}

bool PoolCluster::repaired() const {
  if (!options_.survives) return true;
  for (int n = 0; n < options_.nodes; n++)
    if (crashed(n) && (!withdrawn(n) || (options_.rejoins && n == options_.crash_node))) return false;
  return true;
}

// What the system does for dead processes.  A death is certain when the node's verbs are over, too
// (repair.death-is-over).
void PoolCluster::died(PoolMember& m) {
  const int node = m.id.value;
  deaths_.nodes++;
  if (tracing) trace("node %d dies", node);
  if (is_targeted()) arm_others();
  for (uint32_t i = 0; i < m.node().frames(); i++) {
    const LineOp op = fields(m.node().line(i)).state.op;
    const bool repairs =
        op == LineOp::kTakeReadPosted || op == LineOp::kTakeWritePosted || op == LineOp::kRepairedPosted;
    deaths_.in_repair += repairs;
  }
  if (mutation == Mutation::kNobodyWatches) return;
  Random chance(Random::mix(options_.seed ^ (0x105e + uint64_t(node))));
  if (options_.loses_memory &&
      !options_.slow_checkpoints) {  // at the worst moment: sessions have left holes in its ring
    Scheduler::Calm calm(*scheduler());
    disk_.make_checkpoint(logs_of_all(), chance);
  }
  disk_.lose_process(m.id, m.log, chance);
  if (!options_.survives) return free_locks_of(node);
  scheduler()->spawn(Scheduler::kNobody, [this, node] {
    scheduler()->sleep(kVerbsNsMax);
    Scheduler::Calm calm(*scheduler());
    record(*members_[size_t(node)]);
    take_back(node);
    oracle_.died(node);
    free_locks_of(node);
  });
}

// repair.recorded-first
void PoolCluster::record(PoolMember& m) {
  const auto ring = m.pool->ring_of(m.id);
  Counters counters{};
  const auto memory = m.node().open_memory(counters);
  Problem problem;
  const uint64_t incarnation = m.node().incarnation();
  auto index = recovery::RingIndex::read(*memory, ring.at, ring.bytes, incarnation, &problem);
  if (!index) return object(Checker::kProgress, "the ring of node %d cannot be read: %s", m.id.value, problem.text);
  if (mutation != Mutation::kDeathRecordedLate)
    return disk_.died(m.id, incarnation, (*index)->first_sequence(), (*index)->framed());
  const std::shared_ptr<recovery::RingIndex> later = index.take();
  scheduler()->spawn(Scheduler::kNobody, [this, id = m.id, incarnation, later] {
    scheduler()->sleep(20 * kMs);
    disk_.died(id, incarnation, later->first_sequence(), later->framed());
  });
}

void PoolCluster::changes(int page, uint64_t value, uint64_t before) {
  const int node = scheduler()->node();
  std::vector<Change>& recent = changes_[size_t(page)];
  if (!recent.empty() && recent.back().node != node) recent.clear();
  recent.push_back({node, versions_[size_t(page)] + 1, value, before});
  former_[size_t(page)].push_back(before);
}

// As its survivors will find it: up to the first hole.
std::vector<bufmgr::RecordPage> PoolCluster::in_ring(int node) {
  std::vector<bufmgr::RecordPage> found;
  const PoolMember& m = *members_[size_t(node)];
  const auto ring = m.pool->ring_of(m.id);
  Counters counters{};
  const auto memory = members_[size_t(node)]->node().open_memory(counters);
  auto reader = bufmgr::RingReader::open(*memory, ring.at, ring.bytes);
  std::vector<std::byte> buffer(bufmgr::kMiniRecordMax);
  while (reader.ok()) {
    const auto record = reader->next(*memory, buffer);
    if (!record) break;
    bufmgr::RecordReader walk(*record);
    while (const bufmgr::RecordPage* page = walk.next_page()) found.push_back(*page);
  }
  return found;
}

PoolDisk::NodeLog PoolCluster::log_of(PoolMember& m) {
  const auto ring = m.pool->ring_of(m.id);
  Counters counters{};
  const auto memory = m.node().open_memory(counters);
  auto reader = bufmgr::RingReader::open(*memory, ring.at, ring.bytes);
  std::vector<std::byte> buffer(bufmgr::kMiniRecordMax);
  while (reader.ok() && reader->next(*memory, buffer).ok()) {
  }
  return {&m.log, reader.ok() ? reader->position() : 0};
}

uint64_t PoolCluster::value_at(int page, uint64_t version) const {
  const auto& former = former_[size_t(page)];
  return version < former.size() ? former[version] : oracle_.value(page);
}

// It is not, for the cluster: what would be left is looked at.
void PoolCluster::lose_memory() {
  Random chance(Random::mix(options_.seed ^ 0x9034e4));
  while (!closing_) {
    scheduler()->sleep(chance.between(50 * kUs, 3'000 * kUs) * (options_.slow_checkpoints ? 8 : 1));
    if (!options_.survives && fenced()) return;
    Scheduler::Calm calm(*scheduler());
    check_restart(chance, false);
  }
}

// What is neither in the pool nor in what can be read of the ring has not taken place.  No other node has seen it
// (log.redo-before-page).
void PoolCluster::take_back(int node) {
  const auto found = in_ring(node);
  for (int page = 0; page < int(pages_.size()); page++) {
    uint64_t in_pool;
    memcpy(&in_pool, gcl_test::pool_bytes(members_[0]->pool->coherence_pool(), id(page)), sizeof in_pool);
    std::vector<Change>& recent = changes_[size_t(page)];
    while (!recent.empty() && recent.back().node == node) {
      const Change last = recent.back();
      const bool there = in_pool >= last.version || std::any_of(found.begin(), found.end(), [&](const auto& p) {
                           return p.page == id(page) && p.version == last.version;
                         });
      if (there) break;
      if (tracing) trace("page %d: value %lu was not logged", page, last.value);
      oracle_.take_back(page, last.before);
      taken_back_++;
      versions_[size_t(page)] = last.version - 1;
      former_[size_t(page)].pop_back();
      recent.pop_back();
    }
  }
}

// As soon as its name is free.
void PoolCluster::rejoin(PoolMember& m) {
  const int number = m.id.value;
  while (!closing_ && !(crashed(number) && withdrawn(number))) scheduler()->sleep(kMs);
  if (closing_) return;
  scheduler()->revive(number);
  if (!join(m)) return;
  deaths_.rejoined++;
  if (tracing) trace("node %d joins again", number);
  start(m);
}

// repair.recorded-first.  What is recorded is the disk's business (pool_disk).
void PoolCluster::record_deaths(PoolMember& m) {
  const NodeSet unrecorded = m.node().unrecorded();
  if (is_targeted() && !unrecorded.empty()) scheduler()->yield(FaultPoint::kDeathJournalled);
  for (NodeSet left = unrecorded; !left.empty(); left = left.without(left.first()))
    (void)m.node().recorded(left.first(), m.node().info(left.first()).incarnation);
}

namespace {

class EndsToRecord final : public bufmgr::Interrupts {
 public:
  explicit EndsToRecord(bufmgr::BufferPool& pool) : pool_(pool) {}
  bool pending() noexcept override {
    return mutation != Mutation::kRecordingWaits && recovery::is_to_record(pool_);  // recovery.recording-ends-waits
  }

 private:
  bufmgr::BufferPool& pool_;
};

}  // namespace

// One of several survivors; each of them may die in the middle of it.  Records and sweeps, as the product's worker.
void PoolCluster::sweep(PoolMember& m) {
  while (!m.stopping && !m.pool->fenced()) {
    scheduler()->sleep(scheduler()->random().between(50 * kUs, 500 * kUs), FaultPoint::kSweep);
    record_deaths(m);
    const NodeSet dead = m.node().repairable();
    if (dead.empty()) continue;
    EndsToRecord interrupts(*m.pool);
    const auto session = m.pool->attach(SessionId{uint16_t(options_.threads + 2)}, interrupts, m.log);
    Problem problem;
    auto step = m.sweep->step(*session, &problem);
    while (step && *step == recovery::PageSweep::Step::kWorked) step = m.sweep->step(*session, &problem);
    if (!step && step.error() != Errc::kFenced && step.error() != Errc::kInterrupted)
      object(Checker::kProgress, "node %d cannot sweep: %s", m.id.value, problem.text);
    if (mutation == Mutation::kSweptUnwritten && unnamed(*session, dead.first()))
      (void)m.node().swept(dead.first(), m.node().info(dead.first()).incarnation);
  }
  m.sweeping = false;
}

// Whether no latch word names it.
bool PoolCluster::unnamed(bufmgr::Session& session, NodeId dead) {
  return std::all_of(pages_.begin(), pages_.end(), [&](PageId page) {
    const auto named = session.coherence().drop_dead(page, dead);
    return named.ok() && *named == Session::Named::kNot;
  });
}

}  // namespace sim
