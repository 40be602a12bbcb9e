#include "bench/paper/selcc_cluster.hpp"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "bench/paper/cache.hpp"
#include "bench/paper/seams.hpp"
#include "coherence/eviction_window.hpp"
#include "coherence/line/features.hpp"
#include "coherence/member/node.hpp"
#include "coherence/session.hpp"
#include "coherence/transport/shm/local_pool.hpp"

namespace coherence {

struct SessionAccess {
  static paper::Worker worker(Session& s) { return {&s.server_, &s.server_, s.memory_.get(), &s.node_}; }
};

}  // namespace coherence

namespace paper {
namespace {

constexpr uint32_t kServeMs = 100;
constexpr int kVictimsMax = 2;
constexpr int kEvictors = 8;  // of each memory node: batches in flight
constexpr uint64_t kAgainNs = 1'000, kIdleNs = 1'000'000'000;

[[noreturn]] void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  abort();
}

}  // namespace

struct SelccCluster::Member final : coherence::FrameDirectory {
  Member(uint64_t pages, uint64_t frames, int memory, int number)
      : cache(pages, frames, memory, kVictimsMax, uint64_t(number)), memory_nodes(memory) {}
  coherence::Line* find(coherence::PageId page) noexcept override {
    const uint32_t frame = cache.find(page.number() * uint64_t(memory_nodes) + page.node().value);
    return frame == Cache::kNone ? nullptr : &node->line(frame);
  }
  void lost(coherence::Line& line) noexcept override { cache.lose(node->index_of(line)); }

  Cache cache;
  const int memory_nodes;
  uint32_t wanted_wakeup = 0, free_wakeup = 0;
  std::unique_ptr<coherence::Node> node;
  std::vector<std::unique_ptr<coherence::Session>>
      sessions;  // of each thread, and one of all that is in the background
};

struct SelccCluster::Freed final : coherence::FrameTaker {
  Freed(Member& member, coherence::Session& session, coherence::Line* const* lines)
      : m(member), s(session), victims(lines) {}
  void take(coherence::Line& line, coherence::PageId) noexcept override {
    const uint32_t frame = m.node->index_of(line);
    m.cache.remove(frame);
    s.finish_evict(line);
    m.cache.give_back(frame);
    taken[std::find(victims, victims + kVictimsMax, &line) - victims] = true;
    count++;
  }

  Member& m;
  coherence::Session& s;
  coherence::Line* const* const victims;
  bool taken[kVictimsMax] = {};
  int count = 0;
};

// From the start, the warm-up included.
void SelccCluster::print_counters(const Member& m) const {
  if (!setup_.counters) return;
  for (int c = 0; c < coherence::kCounters; c++) {
    uint64_t all = 0;
    for (uint32_t s = 0; s < m.node->sessions_max(); s++)
      all += m.node->counters({uint16_t(s)}).get(coherence::Counter(c));
    if (all > 0)
      fprintf(stderr, "node %u %s %llu\n", m.node->id().value, counter_name(coherence::Counter(c)),
              (unsigned long long)all);
  }
}

SelccCluster::SelccCluster(const Setup& setup, Network& network) : setup_(setup), network_(network) {
  if (mkdtemp(home_.data()) == nullptr) fail("no directory in /dev/shm");
  path_ = home_ + "/pool";
  seams.network = &network;
  const uint64_t each = setup.work.pages() / uint64_t(network.memory()) + 1;
  coherence::PoolSpec spec{.nodes_max = uint32_t(setup.work.nodes),
                           .memory_nodes = uint32_t(network.memory()),
                           .compatibility = "paper=1\n"};
  spec.region_bytes[coherence::kRegionPages] = spec.further_pages_bytes = each * coherence::kPageSize;
  coherence::Problem problem;
  auto pool = coherence::LocalPool::create({.path = path_.c_str(), .compatibility = "paper=1\n"}, spec, &problem);
  if (!pool) fail(problem.text);
  pool_ = pool.take();
  auto features = coherence::Features::parse(setup.off.empty() ? "all" : setup.off.c_str(), &problem);
  if (!features) fail(problem.text);
  const int threads = setup.work.threads;
  for (int n = 0; n < setup.work.nodes; n++) {
    members_.push_back(std::make_unique<Member>(setup.work.pages(), setup.frames, network.memory(), n));
    Member& m = *members_.back();
    auto node = coherence::Node::join(*pool_, {uint8_t(n)},
                                      {.frames = uint32_t(setup.frames), .sessions_max = uint32_t(threads) + 1},
                                      &problem, coherence::shm_transport());
    if (!node) fail(problem.text);
    m.node = node.take();
    m.node->set_upcalls(&m, nullptr);
    m.node->set_features(*features);
    m.node->set_lease(setup.gamma);
    m.node->set_transport(network_transport());
    for (int s = 0; s <= threads; s++)
      m.sessions.push_back(std::make_unique<coherence::Session>(*m.node, coherence::SessionId{uint16_t(s)}, nullptr));
    seams.crews.emplace_back(n);
    seams.workers.push_back(coherence::SessionAccess::worker(*m.sessions.back()));
  }
  for (size_t n = 1; n < members_.size(); n++)
    for (size_t other = 0; other < n; other++) share_mapping(*members_[n]->node, *members_[other]->node);
}

SelccCluster::~SelccCluster() {
  for (auto& m : members_) print_counters(*m);
  members_.clear();
  seams = {};
  forget_errands();
  pool_.reset();
  std::filesystem::remove_all(home_);
}

void SelccCluster::start() {
  for (auto& member : members_) {
    Member& m = *member;
    const int n = m.node->id().value;
    sim::scheduler()->spawn(n, [&m] {
      while (m.sessions.back()->serve(kServeMs)) {
      }
    });
    for (int k = 0; setup_.batched_eviction && k < kEvictors * network_.memory(); k++)
      sim::scheduler()->spawn(n, [this, &m, k] { evict_for(m, k % network_.memory()); });
  }
}

// Frames come from the free list; where that runs low, the evictors are told.
coherence::Line& SelccCluster::line_of(Member& m, coherence::Session& s, uint64_t page) {
  for (;;) {
    if (const uint32_t frame = m.cache.find(page); frame != Cache::kNone) return m.node->line(frame);
    if (m.cache.free_frames() > 0) break;
    if (setup_.batched_eviction) {
      sim::scheduler()->park(&m.free_wakeup, m.free_wakeup, kAgainNs);
    } else if (evict(m, s, -1) == 0 && !m.cache.propose()) {
      pass(kAgainNs);
    }
  }
  coherence::Line& line = m.node->line(m.cache.add(page));
  if (!s.assign(line, id(page), [] {})) fail("the pool is fenced");
  if (setup_.batched_eviction && m.cache.runs_low()) {
    m.wanted_wakeup++;
    sim::scheduler()->wake(&m.wanted_wakeup, kEvictors * network_.memory());
  }
  return line;
}

void SelccCluster::evict_for(Member& m, int memory_node) {
  for (;;) {
    const uint32_t seen = m.wanted_wakeup;
    if (evict(m, *m.sessions.back(), memory_node) > 0) continue;
    if (m.cache.propose()) {
      m.wanted_wakeup++;
      sim::scheduler()->wake(&m.wanted_wakeup, kEvictors * network_.memory());
    } else {
      sim::scheduler()->park(&m.wanted_wakeup, seen, kIdleNs);
    }
  }
}

// A batch of one memory node's pages (-1: one page of any); how many it tried.
int SelccCluster::evict(Member& m, coherence::Session& s, int memory_node) {
  coherence::Line* lines[kVictimsMax];
  coherence::PageId pages[kVictimsMax];
  uint32_t frames[kVictimsMax];
  const int count = m.cache.take(memory_node, frames);
  if (count == 0) return 0;
  for (int i = 0; i < count; i++) {
    pages[i] = id(m.cache.page(frames[i]));
    lines[i] = &m.node->line(frames[i]);
  }
  Freed freed(m, s, lines);
  coherence::EvictionWindow window(s, freed);
  window.add(lines, pages, count);
  window.finish();
  for (int i = 0; i < count; i++)
    if (!freed.taken[i]) m.cache.keep(frames[i]);
  m.free_wakeup++;
  sim::scheduler()->wake(&m.free_wakeup, freed.count);
  return count;
}

coherence::Line* SelccCluster::latch(int node, int thread, uint64_t page, bool write) {
  Member& m = *members_[size_t(node)];
  coherence::Session& s = *m.sessions[size_t(thread)];
  for (;;) {
    coherence::Line& line = line_of(m, s, page);
    const coherence::Status ok = write ? s.lock_exclusive(line, id(page)) : s.lock_shared(line, id(page));
    if (ok.error() == coherence::Errc::kHeld) return nullptr;
    if (ok) {
      m.cache.used(m.node->index_of(line));
      return &line;
    }
    pass(setup_.costs.local_hand_over_ns);  // another page's by now
  }
}

std::byte* SelccCluster::bytes(int node, const coherence::Line& line) const {
  return members_[size_t(node)]->node->frame(line);
}

void SelccCluster::changed(coherence::Line& line, uint32_t changed) const {
  uint64_t mask[2] = {};
  for (uint32_t i = 0; i < setup_.work.gcl / 64; i++)
    if (i == changed || !setup_.dirty_ranges) mask[i / 64] |= uint64_t{1} << i % 64;
  line.note_change(mask, {}, 0);
}

void SelccCluster::unlatch(int node, int thread, coherence::Line& line, bool write) {
  coherence::Session& s = *members_[size_t(node)]->sessions[size_t(thread)];
  if (write)
    s.unlock_exclusive(line);
  else
    s.unlock_shared(line);
}

void SelccCluster::hold(int node, int thread, coherence::Line& line, bool write) {
  members_[size_t(node)]->sessions[size_t(thread)]->hold(line, write);
}

void SelccCluster::drop(int node, int thread, coherence::Line& line, bool write) {
  members_[size_t(node)]->sessions[size_t(thread)]->drop_hold(line, write);
}

}  // namespace paper
