#include "pool_cluster.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "coherence/base/os.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/region/pool_lock.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "home.hpp"
#include "meeting.hpp"
#include "pool_user.hpp"

namespace sim {
namespace {

// Longer than a run comes to rest in, so that a provider that sleeps through a call for frames is seen.
constexpr uint32_t kProviderMs = 5'000;
constexpr SessionId kServer{0}, kProvider{1};
constexpr uint64_t kFirstPage = 2;      // the root and the allocator's map are not ours
constexpr uint64_t kPagesOfEach = 120;  // that a memory node has at least

void call_provider(const PoolMember& m) {
  m.shared().provider_called.fetch_add(1);
  futex_wake(m.shared().provider_called, 1);  // signal_wakeup() may be broken on purpose
}

// The bucket of a frame table where a page is at home: where it goes when there is room.
size_t home_of(PageId page, uint32_t frames) {
  struct alignas(64) Bytes64 {
    uint64_t word[8];
  };
  std::vector<Bytes64> memory(bufmgr::FrameTable::bytes_for(frames) / sizeof(Bytes64), Bytes64{});
  const std::atomic<uint32_t> fence{0};
  bufmgr::FrameTable table(memory.data(), frames, fence);
  table.insert(
      page, 0, [](uint32_t) { return false; }, [] {});
  for (size_t bucket = 1; bucket < memory.size(); bucket++)
    for (uint64_t word : memory[bucket].word)
      if (word) return bucket;
  abort();
}

std::vector<PageId> pages_of(const Options& o) {
  std::vector<PageId> pages;
  size_t home = 0;
  for (uint64_t i = 0; i < 2 * kPagesOfEach && pages.size() < size_t(o.pages); i++) {
    const PageId page = PageId::at(MemoryNodeId{uint8_t(i % 2)}, kFirstPage + i / 2);
    if (o.one_home && pages.empty()) home = home_of(page, uint32_t(o.frames));
    if (!o.one_home || home_of(page, uint32_t(o.frames)) == home) pages.push_back(page);
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

}  // namespace

PoolCluster::PoolCluster(const Options& o)
    : options_(o),
      path_(home() + "/pool"),
      pages_(pages_of(o)),
      versions_(pages_.size()),
      former_(pages_.size()),
      changes_(pages_.size()),
      oracle_(int(pages_.size())),
      crashes_in_repair_(o.crashes_in_repair) {
  Problem problem;
  const auto made = bufmgr::BufferPool::create_pool({.path = path_.c_str(), .compatibility = "sim=1\n"},
                                                    {.pool_bytes = (4u << 20) + uint64_t(o.nodes) * (704u << 10),
                                                     .memory_nodes = 2,
                                                     .nodes_max = uint32_t(o.nodes),
                                                     .ring_bytes = bufmgr::kRingBytesLeast,
                                                     .status_words = 1,
                                                     .repairs_deaths = o.survives,
                                                     .records_deaths = o.survives},
                                                    &problem);
  if (!made) fprintf(stderr, "%s\n", problem.text), abort();
  for (int n = 0; n < o.nodes; n++) members_.push_back(std::make_unique<PoolMember>(n));
  for (int i = 0; i < o.nodes * o.threads; i++) waiting_.push_back(std::make_unique<Waiting>());
  observer = this;
}

PoolCluster::~PoolCluster() {
  observer = nullptr;
  members_.clear();
  empty_home();
}

int PoolCluster::index_of(PageId page) const {
  const auto at = std::lower_bound(pages_.begin(), pages_.end(), page);
  return at != pages_.end() && *at == page ? int(at - pages_.begin()) : -1;
}

bufmgr::NodeOptions PoolCluster::node_options(NodeId node) const {
  return {.files = {.path = path_.c_str(), .compatibility = "sim=1\n"},
          .node = node,
          .frames = uint32_t(options_.frames),
          .sessions_max = uint32_t(options_.threads) + 2 + options_.survives,
          .replacement = options_.second_chance ? bufmgr::ReplacementKind::kSecondChance
                                                : bufmgr::ReplacementKind::kEpochSampling};
}

bufmgr::ArenaPlan PoolCluster::plan_of(const PoolMember& m) const {
  return bufmgr::ArenaPlan::make(m.node().frames(), m.node().sessions_max(), m.pool->ring().data_bytes(), 0);
}

// Files are the machine's: a join happens at once.
bool PoolCluster::join(PoolMember& m) {
  // A process that has the pool's lock goes on first: nobody does while it is calm.
  while (scheduler()->in_fiber() && !PoolLock(path_.c_str(), PoolLock::kTry).held()) scheduler()->sleep(kUs);
  Scheduler::Calm calm(*scheduler());
  Problem problem;
  joining_node = m.id.value;
  auto joined = bufmgr::BufferPool::create_node(node_options(m.id), &problem);
  joining_node = -1;
  if (!joined) {
    const bool refused = joined.error() == Errc::kFenced && options_.may_fence();
    if (!refused) object(Checker::kProgress, "node %d cannot join: %s", m.id.value, problem.text);
    return false;
  }
  if (m.pool) m.former.push_back(std::move(m.pool));
  m.sweep.reset();
  m.pool = joined.take();
  m.redo = std::make_unique<PoolRedo>(*m.pool, crashes_in_repair_);
  m.sweep = std::make_unique<recovery::PageSweep>(*m.pool, m.redo->rings);
  m.node().set_repair(m.redo.get());
  m.node().set_lease(options_.gamma);
  coherence::MappedPool::of(m.pool->coherence_pool()).table().node[m.id.value].pid.store(kFirstPid + m.id.value);
  m.log.set_late(options_.lazy_log);
  if (options_.loses_memory) m.log.keep_records();
  disk_.joined(m.id, m.node().incarnation(), m.pool->first_sequence());
  note_free_list(m.node().private_memory() + plan_of(m).free);
  m.calls_heard = 0;
  m.left = m.stopping = false;
  for (auto& other : members_)
    if (other->pool && other->id != m.id) meet(m.node().parts(), other->node().parts());
  return true;
}

void PoolCluster::start() {
  for (auto& m : members_)
    if (!join(*m)) abort();
  scheduler()->on_crash([this](int node) { died(*members_[size_t(node)]); });
  for (auto& m : members_) start(*m);
  if (options_.rejoins)
    scheduler()->spawn(Scheduler::kNobody, [this] { rejoin(*members_[size_t(options_.crash_node)]); });
  if (options_.noise) scheduler()->spawn(Scheduler::kNobody, [this] { disturb(); });
  if (options_.loses_memory) scheduler()->spawn(Scheduler::kNobody, [this] { lose_memory(); });
  if (options_.slow_checkpoints) scheduler()->spawn(Scheduler::kNobody, [this] { make_checkpoints(); });
}

// The node's fibers.
void PoolCluster::start(PoolMember& m) {
  const int number = m.id.value, lives = number == options_.leaver ? 2 : 1;
  m.serving = true;
  scheduler()->spawn(number, [this, &m, lives] { serve(m, lives); });
  if (options_.lazy_log) scheduler()->spawn(number, [this, &m] { write_log(m); });
  employ(m, options_.operations);
}

void PoolCluster::employ(PoolMember& m, int operations) {
  m.users = options_.threads;
  m.providing = true;
  scheduler()->spawn(m.id.value, [this, &m] {
    {
      const auto session = m.pool->attach(kProvider, never_, m.log);
      while (!m.stopping && !m.pool->fenced()) {
        if (m.pool->run_provider_once(*session)) continue;
        m.calls_heard = m.shared().provider_called.load();
        m.pool->wait_for_provider_work(kProviderMs);
      }
    }
    m.providing = false;
  });
  m.sweeping = options_.survives;
  if (options_.survives) scheduler()->spawn(m.id.value, [this, &m] { sweep(m); });
  for (int t = 0; t < options_.threads; t++)
    scheduler()->spawn(m.id.value, [this, &m, t, operations] {
      PoolUser(*this, m, t).work(operations);
      m.users--;
    });
}

// The message worker, which is also the postmaster of the node's lives.
void PoolCluster::serve(PoolMember& m, int lives) {
  for (int life = 1;; life++) {
    const bool last_life = life == lives;
    {
      const auto session = m.pool->attach(kServer, never_, m.log);
      while (!closing_ && (last_life || m.users > 0))
        if (!m.pool->serve(*session, kServeMs)) return void(m.serving = false);
      if (!stop_provider(m, *session)) return void(m.serving = false);
      Problem problem;
      Recorder recorder(*this, m);
      const Status left = m.pool->leave(*session, &m.last, &problem, &recorder);
      if (!left && left.error() != Errc::kFenced)
        object(Checker::kProgress, "node %d cannot leave: %s", m.id.value, problem.text);
      if (!left) return void(m.serving = false);
    }
    m.left = true;
    if (closing_ || last_life) return void(m.serving = false);
    scheduler()->sleep(scheduler()->random().below(2'000 * kUs), FaultPoint::kLeft);
    if (!join(m)) return void(m.serving = false);
    employ(m, options_.operations / 2);
  }
}

// False: the pool is fenced.
bool PoolCluster::stop_provider(PoolMember& m, bufmgr::Session& session) {
  m.stopping = true;
  while (m.providing || m.sweeping) {
    call_provider(m);
    if (!m.pool->serve(session, 1)) return false;
  }
  return true;
}

void PoolCluster::write_log(PoolMember& m) {
  while (m.serving) {
    scheduler()->sleep(scheduler()->random().between(20 * kUs, 400 * kUs), FaultPoint::kLogAsked);
    if (!m.log.is_asked()) continue;
    const uint64_t end = m.log.end();
    scheduler()->sleep(scheduler()->random().between(10 * kUs, 200 * kUs), FaultPoint::kLogWritten);
    m.log.flush(end);
    if (!m.left) m.node().ring();
  }
}

// What may happen at any time and says nothing: wakeups that no process sent, words that grew for nothing.
void PoolCluster::disturb() {
  Random& random = scheduler()->random();
  while (!closing_) {
    scheduler()->sleep(random.between(2 * kUs, 100 * kUs));
    PoolMember& m = *members_[random.below(members_.size())];
    if (m.left || !lives(m)) continue;
    if (random.one_in(2))
      m.node().ring();
    else
      call_provider(m);
  }
}

uint64_t PoolCluster::count(Counter c) const {
  uint64_t sum = 0;
  auto add = [&](bufmgr::BufferPool& pool) {
    const Node& node = pool.coherence_node();
    for (uint16_t s = 0; s < node.sessions_max(); s++) sum += node.counters(SessionId{s}).get(c);
  };
  for (const auto& m : members_) {
    add(*m->pool);
    for (const auto& former : m->former) add(*former);
  }
  return sum;
}

std::vector<uint64_t> PoolCluster::buffer_counts() const {
  std::vector<uint64_t> sums(size_t(bufmgr::kCounts), 0);
  auto add = [&](bufmgr::BufferPool& pool) {
    for (uint16_t s = 0; s < pool.coherence_node().sessions_max(); s++)
      for (int c = 0; c < bufmgr::kCounts; c++) sums[size_t(c)] += pool.counts(SessionId{s}).get(bufmgr::Count(c));
  };
  for (const auto& m : members_) {
    add(*m->pool);
    for (const auto& former : m->former) add(*former);
  }
  return sums;
}

}  // namespace sim
