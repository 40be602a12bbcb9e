#include "cluster.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "coherence/eviction_window.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/region/pool_lock.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/peer_arena.hpp"
#include "home.hpp"
#include "meeting.hpp"
#include "user.hpp"

namespace sim {
namespace {

constexpr int kTriesForFrame = 20;
constexpr int kLivesOfFormer = 6;
constexpr uint64_t kAwayNsMax = 2'000 * kUs;  // between two lives of a node

class Unpublish final : public FrameTaker {
 public:
  Unpublish(Member& member, Session& session) : member_(member), session_(session) {}
  void take(Line& line, PageId page) noexcept override { member_.unpublish(session_, line, page); }

 private:
  Member& member_;
  Session& session_;
};

}  // namespace

// --- a node's page directory
// ---------------------------------------------------------------------------------------------

Line* Member::line(Session& session, int page) {
  for (int i = 0; i < kTriesForFrame; i++) {
    if (Line* there = directory.lines[size_t(page)]) return there;
    if (directory.coming[size_t(page)]) {
      scheduler()->sleep(kUs);
    } else if (!free.empty()) {
      Line& line = node->line(free.back());
      free.pop_back();
      directory.coming[size_t(page)] = true;
      const auto publish = [&] { directory.lines[size_t(page)] = &line; };
      const Status assigned = session.assign(line, Directory::page(page), publish);
      directory.coming[size_t(page)] = false;
      if (!assigned) {  // fenced, or interrupted
        free.push_back(node->index_of(line));
        return nullptr;
      }
      return &line;
    } else if (!evict(session, int(scheduler()->random().below(directory.lines.size())))) {
      scheduler()->sleep(kUs);
    }
  }
  return nullptr;
}

void Member::unpublish(Session& session, Line& line, PageId page) {
  directory.lines[size_t(Directory::index_of(page))] = nullptr;
  session.finish_evict(line);
  free.push_back(node->index_of(line));
}

bool Member::evict(Session& session, int page) {
  Line* line = directory.lines[size_t(page)];
  if (!line || !session.try_evict(*line, Directory::page(page))) return false;
  unpublish(session, *line, Directory::page(page));
  return true;
}

void Member::evict_all(Session& session) {
  std::vector<Line*> lines;
  std::vector<PageId> pages;
  for (size_t i = 0; i < directory.lines.size(); i++)
    if (Line* line = directory.lines[i]) {
      lines.push_back(line);
      pages.push_back(Directory::page(int(i)));
    }
  Unpublish taker(*this, session);
  InWindow counted(session.memory());
  EvictionWindow window(session, taker);
  for (size_t i = 0, some = 0; i < lines.size(); i += some) {
    some = scheduler()->random().one_in(2) ? 1 : scheduler()->random().between(1, lines.size() - i);
    window.add(&lines[i], &pages[i], int(some));
  }
}

// --- the cluster
// ---------------------------------------------------------------------------------------------------------

Cluster::Cluster(const Options& o) : options_(o), path_(home() + "/pool"), far_(o), oracle_(o.pages), redo_(o) {
  PoolSpec spec{.nodes_max = uint32_t(o.nodes), .memory_nodes = 2, .compatibility = "sim=1\n"};
  spec.region_bytes[kRegionPages] = uint64_t(o.pages) * kPageSize;
  spec.further_pages_bytes = uint64_t(o.pages) * kPageSize;
  spec.repairs_deaths = o.survives;
  if (o.probes_wakeups) spec.region_bytes[WakeupProbe::kRegion] = WakeupProbe::kRegionBytes;
  Problem problem;
  auto made = LocalPool::create({.path = path_.c_str(), .compatibility = "sim=1\n"}, spec, &problem);
  if (!made) fprintf(stderr, "%s\n", problem.text), abort();
  pool_ = made.take();
  for (int n = 0; n < o.nodes; n++) members_.push_back(std::make_unique<Member>(n, o));
  for (int i = 0; i < o.nodes * o.threads; i++) waiting_.push_back(std::make_unique<Waiting>());
  if (o.far_members) far_.begin_members(MappedPool::of(*pool_));
  observer = this;
}

Cluster::~Cluster() {
  observer = nullptr;
  members_.clear();
  pool_.reset();
  unmap_all();
  empty_home();
}

// Where members are near, their files are the machine's: a join happens at once.
bool Cluster::join(Member& m) {
  std::optional<Scheduler::Calm> calm;
  if (!options_.far_members) {
    // A process that has the pool's lock goes on first: nobody does while it is calm.
    while (scheduler()->in_fiber() && !PoolLock(path_.c_str(), PoolLock::kTry).held()) scheduler()->sleep(kUs);
    calm.emplace(*scheduler());
  }
  Problem problem;
  joining_node = m.id.value;
  auto joined = try_to_join(m, &problem);
  while (options_.call_breaks > 0 && (joined.error() == Errc::kUnreached || joined.error() == Errc::kUnrepaired ||
                                      joined.error() == Errc::kCorrupt || joined.error() == Errc::kBusy)) {
    scheduler()->sleep(kMs);
    joined = try_to_join(m, &problem);
  }
  joining_node = -1;
  if (!joined) {
    const bool refused = joined.error() == Errc::kFenced && options_.may_fence();
    if (!refused) object(Checker::kProgress, "node %d cannot join: %s", m.id.value, problem.text);
    return false;
  }
  if (!calm) calm.emplace(*scheduler());
  enter(m, joined.take());
  return true;
}

Result<std::unique_ptr<Node>> Cluster::try_to_join(Member& m, Problem* problem) {
  return Node::join(*pool_, m.id, arena_spec(options_), problem,
                    options_.far_members ? static_cast<Transport&>(far_) : shm_transport());
}

void Cluster::enter(Member& m, std::unique_ptr<Node> node) {
  if (m.node) m.former.push_back(std::move(m.node));
  m.node = std::move(node);
  m.node->set_upcalls(&m.directory, &m.horizon);
  m.node->set_repair(&redo_);
  if (options_.far) m.node->set_transport(far_);
  Features features = Features::all();
  for (int f = 0; f < kFeatures; f++)
    if (options_.off >> f & 1) features = features.without(Feature(f));
  if (grants_first(mutation)) features = features.without(Feature::kEarlyAnswers);
  m.node->set_features(features);
  m.node->set_lease(mutation == Mutation::kNoTurnLimit ? ~0u : options_.gamma);
  MappedPool::of(*pool_).table().node[m.id.value].pid.store(kFirstPid + m.id.value);
  m.horizon.lazy = options_.lazy_log;
  m.left = m.leaving = m.sweeping = false;
  m.free.clear();
  for (uint32_t i = 0; i < m.frames; i++) m.free.push_back(i);
  std::fill(m.directory.lines.begin(), m.directory.lines.end(), nullptr);
  for (auto& other : members_)
    if (!options_.far_members && other->node && other->id != m.id) meet(m.node->parts(), other->node->parts());
}

// With `former` it leaves often, while the others are at work.
int Cluster::lives_of(const Member& m) const {
  return m.id.value != options_.leaver ? 1 : options_.former ? kLivesOfFormer : 2;
}

void Cluster::start() {
  for (auto& m : members_)
    if (!join(*m)) abort();
  scheduler()->on_crash([this](int node) { died(*members_[size_t(node)]); });
  for (auto& m : members_) start(*m);
  for (auto& m : members_) m->awaited = options_.rejoins && m->id.value == options_.crash_node;
  if (options_.rejoins)
    scheduler()->spawn(Scheduler::kNobody, [this] { rejoin(*members_[size_t(options_.crash_node)]); });
  if (options_.noise || mutation == Mutation::kTakenTwice)
    scheduler()->spawn(Scheduler::kNobody, [this] { disturb(); });
}

// The node's fibers.
void Cluster::start(Member& m) {
  const int number = m.id.value, lives = lives_of(m);
  const int operations = options_.operations / (lives == kLivesOfFormer ? kLivesOfFormer : 1);
  m.serving = true;
  m.users = options_.threads;
  scheduler()->spawn(number, [this, &m, lives] { serve(m, lives); });
  if (options_.lazy_log) scheduler()->spawn(number, [this, &m] { write_log(m); });
  if (options_.survives) scheduler()->spawn(number, [this, &m] { sweep(m); });
  begin_probe(m);
  for (int t = 0; t < options_.threads; t++)
    scheduler()->spawn(number, [this, &m, t, operations] {
      if (hogs(m))
        User(*this, m, t).hog(*members_[size_t(options_.victim)]);
      else
        User(*this, m, t).work(operations);
      m.users--;
    });
}

void Cluster::begin_probe(Member& m) {
  if (!options_.probes_wakeups) return;
  Node& node = *m.node;
  const auto in_this_life = [&m, &node] { return m.node.get() == &node && !m.left; };
  scheduler()->spawn(m.id.value, [this, &m, &node, in_this_life] {
    probe_.post(node, options_.nodes, [&m, in_this_life] { return in_this_life() && m.users > 0; });
  });
  scheduler()->spawn(m.id.value, [this, &m, &node, in_this_life] {
    probe_.attend(node, [this, &m, in_this_life] { return in_this_life() && m.serving && !closing_; });
  });
}

// The worker, which is also the postmaster of the node's lives.
void Cluster::serve(Member& m, int lives) {
  for (int life = 1;; life++) {
    const bool last_life = life == lives;
    const uint32_t ms = options_.former && !last_life ? 0 : kServeMs;  // it leaves while peers want its pages
    {
      Session session(*m.node, SessionId{uint16_t(options_.threads)}, nullptr);
      while (!closing_ && (last_life || m.users > 0)) {
        if (!session.serve(ms)) return ended(m);
        if (ms == 0) scheduler()->sleep(2 * kUs);
      }
      if (options_.former && !last_life) {  // what a peer has sent is on its way until the node is there again
        const auto peer = int(1 + scheduler()->random().below(members_.size() - 1));
        scheduler()->pause_node((m.id.value + peer) % int(members_.size()), scheduler()->now(), kAwayNsMax);
      }
      m.leaving = true;
      probe_.forget(m.id);
      while (m.sweeping)  // Node::leave()
        if (!session.serve(1)) return ended(m);
      Problem problem;
      const Status left = m.node->leave(session, &m.last, &problem);
      if (options_.call_breaks > 0 && (left.error() == Errc::kUnreached || left.error() == Errc::kCorrupt))
        scheduler()->crash(m.id.value);  // its host ends its processes: it has left, or is dead
      if (!left && left.error() != Errc::kFenced)
        object(Checker::kProgress, "node %d cannot leave: %s", m.id.value, problem.text);
      if (!left) return ended(m);
    }
    m.left = true;
    if (closing_ || last_life) return void(m.serving = false);
    scheduler()->sleep(scheduler()->random().below(kAwayNsMax));
    if (!join(m)) return void(m.serving = false);
    m.users = options_.threads;
    begin_probe(m);
    for (int t = 0; t < options_.threads; t++)
      scheduler()->spawn(m.id.value, [this, &m, t] {
        User(*this, m, t).work(options_.operations / (options_.former ? kLivesOfFormer : 2));
        m.users--;
      });
  }
}

// There is a fence: the pool's; or the node's own, and then its host ends its processes (node.cut-off-joins-again).
void Cluster::ended(Member& m) {
  m.serving = false;
  if (!m.node->is_cut_off()) return;
  m.was_cut_off = true;
  if (tracing) trace("node %d is cut off", m.id.value);
  if (!m.awaited && !closing_) {
    m.awaited = true;
    scheduler()->spawn(Scheduler::kNobody, [this, &m] { rejoin(m); });
  }
  scheduler()->crash(m.id.value);
}

void Cluster::write_log(Member& m) {
  while (m.serving) {
    scheduler()->sleep(scheduler()->random().between(20 * kUs, 400 * kUs));
    if (m.horizon.wanted <= m.horizon.flushed_lsn) continue;
    const uint64_t end = m.horizon.written;
    scheduler()->sleep(scheduler()->random().between(10 * kUs, 200 * kUs));
    m.horizon.flushed_lsn = end;
    if (!m.left) m.node->ring();
  }
}

ArenaHeader& Cluster::arena(Member& m) const {
  return *reinterpret_cast<ArenaHeader*>(m.node->private_memory() - arena_layout(arena_spec(options_)).private_at);
}

// What may happen at any time and says nothing: wakeups that no process sent, hints that promise nothing, messages that
// come again while their request is open, or late.
void Cluster::disturb() {
  Random& random = scheduler()->random();
  while (!closing_) {
    scheduler()->sleep(random.between(2 * kUs, 100 * kUs));
    Member& m = *members_[random.below(members_.size())];
    if (m.left || !lives(m)) continue;
    ArenaHeader& there = arena(m);
    const uint64_t peer = random.below(members_.size());
    Member& asker = *members_[peer];
    const auto any_slot = uint32_t(random.below(arena_spec(options_).sessions_max * kSlotsPerSession));
    switch (random.below(5)) {
      case 0:
        there.inbox_peers.fetch_or(uint64_t{1} << peer);
        break;
      case 1:
        there.inbox[peer].words_set.fetch_or(1);
        break;
      case 2:
        ring(there);
        break;
      case 3: {
        auto* slots = PeerArena::alias(there);
        RequestSlot* slot = slots->slot(any_slot);
        slot->wakeup.fetch_add(1);
        scheduler()->wake(&slot->wakeup, 1);
        delete slots;
        break;
      }
      case 4:
        send_again(asker, any_slot, m);
        break;
    }
    for (uint32_t i = 0; i < asker.frames && lives(asker); i++)
      if (!fields(asker.node->line(i)).state.waiting.empty()) send_again(asker, asker.node->line(i));
  }
}

void Cluster::send_again(const Member& asker, uint32_t slot, Member& to) {
  ArenaHeader& there = arena(to);
  Inbox& inbox = there.inbox[asker.id.value];
  inbox.bits[slot / 64].fetch_or(uint64_t{1} << slot % 64);
  inbox.words_set.fetch_or(uint64_t{1} << slot / 64);
  there.inbox_peers.fetch_or(NodeSet::of(asker.id).bits);
  ring(there);
}

// What is not answered yet.
void Cluster::send_again(Member& asker, const Line& line) {
  std::unique_ptr<PeerArena> mine(PeerArena::alias(arena(asker)));
  for (uint32_t s = 0; s < arena_spec(options_).sessions_max * kSlotsPerSession; s++) {
    RequestSlot& slot = *mine->slot(s);
    if (slot.state.load() != SlotState::kWaiting || slot.line.load() != asker.node->index_of(line)) continue;
    for (NodeSet left = fields(line).state.waiting; !left.empty(); left = left.without(left.first())) {
      if (left.first().value >= members_.size()) continue;  // where a mutation made a word that names no node
      Member& to = *members_[left.first().value];
      std::atomic<uint64_t>& word = slot.reply[left.first().value];
      if (const ReplyWord w{word.load()}; mutation == Mutation::kTakenTwice && w.is_taken())
        word.store(ReplyWord::asked(w.serial(), to.node->incarnation()).raw);
      send_again(asker, s, to);
    }
  }
}

uint64_t Cluster::count(Counter c) const {
  uint64_t sum = 0;
  auto add = [&](const Node& node) {
    for (uint16_t s = 0; s < node.sessions_max(); s++) sum += node.counters(SessionId{s}).get(c);
  };
  for (const auto& m : members_) {
    add(*m->node);
    for (const auto& former : m->former) add(*former);
  }
  return sum;
}

}  // namespace sim
