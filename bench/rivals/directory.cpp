// The RPC directory as in ScaleStore: a page's home, a memory node whose processor answers, knows which nodes cache it.
// One request goes to the home, which records the requester at once (anticipatory chaining) and passes the request on
// to the page's owner; invalidations go in parallel; evictions are told in batches.  A request is a fiber that travels.
//
// rivals.owner-at-home: A writer is the owner from the moment its request is at the home.  Later requests are passed on
//     to it, and wait there for its latch.  Waiting follows the order at the home, so no requests wait in a circle.
// rivals.invalidation-awaits-no-fetch: An invalidation never waits for a requester that is away to fetch: the
//     requester's share is gone, and what it may be bringing as a reader is spoiled; it asks again.  A writer that
//     takes a page from a sharer waits for a writer there that was at the home before it, and not for one that came
//     after.
// rivals.told-frame-stays: A home refuses to forget a node that it has told other nodes about: the frame stays until
//     they have been there.
//
// GAM: the same, but all operations of a node pass one queue, and the home keeps a page's requests one after the other.
// SEQ waits for each operation; TSO has a store buffer for each thread (store_buffer.hpp).
#include <algorithm>
#include <bit>

#include "bench/paper/cache.hpp"
#include "bench/paper/protocol.hpp"
#include "bench/rivals/cached_page.hpp"
#include "bench/rivals/store_buffer.hpp"

namespace paper {
namespace {

constexpr int kVictimsMax = 100;
constexpr uint64_t kAgainNs = 1'000, kIdleNs = 1'000'000'000;
constexpr int kNobody = -1;

struct Entry {
  int owner = kNobody;     // has it modified, or will
  int supplier = kNobody;  // shares it, and has what the home has not
  uint64_t sharers = 0;
  uint64_t turn = 0;  // grows with each writer
  bool busy = false;  // GAM
  uint32_t wakeup = 0;
  std::vector<uint64_t> lines;
  bool shares(int node) const { return sharers >> node & 1; }
};

struct CacheNode {
  CacheNode(uint64_t pages, uint64_t frames, int homes, size_t lines, int number)
      : cache(pages, frames, homes, int(std::min<uint64_t>(kVictimsMax, frames / 64 + 1)), uint64_t(number)),
        frame(frames),
        crew(number) {
    for (CachedPage& f : frame) f.lines.resize(lines);
  }
  CachedPage* find(uint64_t page) {
    const uint32_t f = cache.find(page);
    return f == Cache::kNone ? nullptr : &frame[f];
  }
  void remove(CachedPage& f) {
    const auto index = uint32_t(&f - frame.data());
    cache.remove(index);
    cache.give_back(index);
    f.page = CachedPage::kNoPage;
    f.mode = Mode::kNone;
  }
  Cache cache;
  std::vector<CachedPage> frame;
  uint32_t wanted_wakeup = 0, free_wakeup = 0;
  Queue queue;
  Crew crew;
};

enum class Kind : uint8_t { kScaleStore, kGamSeq, kGamTso };

class Directory final : public Protocol {
 public:
  Directory(const Setup& setup, Network& network, Kind kind)
      : setup_(setup),
        network_(network),
        gam_(kind != Kind::kScaleStore),
        truth_(setup.work.pages(), setup.work.gcl),
        entries_(setup.work.pages()) {
    for (Entry& e : entries_) e.lines.resize(setup.work.gcl / 64);
    for (int n = 0; n < setup.work.nodes; n++)
      nodes_.push_back(
          std::make_unique<CacheNode>(setup.work.pages(), setup.frames, network.memory(), setup.work.gcl / 64, n));
    for (int i = 0; kind == Kind::kGamTso && i < setup.work.nodes * setup.work.threads; i++) {
      const int n = i / setup.work.threads;
      buffers_.push_back(std::make_unique<StoreBuffer>(
          n, [this, n](const Access& a) { unlatch(reach(n, a)); }, [this, n](const Access& a) { perform(n, a); }));
    }
  }
  void start() override {
    for (int n = 0; n < setup_.work.nodes; n++)
      for (int k = 0; k < network_.memory(); k++)
        sim::scheduler()->spawn(n, [this, n, k] { evict_for(n, network_.compute() + k); });
  }
  void access(int node, int thread, const Access& a) override;

 private:
  void perform(int node, const Access& a);
  CachedPage& reach(int node, const Access& a);
  CachedPage& frame_of(CacheNode& n, uint64_t page);
  bool latch(CacheNode& n, CachedPage& f, const Access& a, int node);
  void fetch(int node, CachedPage& f, bool write);
  bool fetch_once(int node, CachedPage& f, bool write);
  bool take_from(int owner, bool as_owner, CachedPage& to, bool write);
  void invalidate(int node, uint64_t page);
  void evict_for(int node, int home);
  int evict(int node, int home);
  void unlatch(CachedPage& f) { f.unlatch(setup_.costs.local_hand_over_ns); }
  uint64_t message() const { return setup_.costs.message_bytes; }

  const Setup& setup_;
  Network& network_;
  const bool gam_;
  Truth truth_;
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<CacheNode>> nodes_;
  std::vector<std::unique_ptr<StoreBuffer>> buffers_;  // TSO: of each thread
};

CachedPage& Directory::frame_of(CacheNode& n, uint64_t page) {
  for (;;) {
    if (CachedPage* f = n.find(page)) return *f;
    if (n.cache.free_frames() > 0) break;
    sim::scheduler()->park(&n.free_wakeup, n.free_wakeup, kAgainNs);
  }
  CachedPage& f = n.frame[n.cache.add(page)];
  f.page = page;
  if (n.cache.runs_low()) {
    n.wanted_wakeup++;
    sim::scheduler()->wake(&n.wanted_wakeup, network_.memory());
  }
  return f;
}

// False: the frame is another page's by now, or was taken meanwhile; look again.
bool Directory::latch(CacheNode& n, CachedPage& f, const Access& a, int node) {
  const auto enough = [&] { return a.write ? f.mode == Mode::kModified : f.mode != Mode::kNone; };
  const bool shared = !a.write && enough();
  f.latch(!shared);
  if (f.page == a.page && enough()) return true;
  if (f.page == a.page && !shared) {
    fetch(node, f, a.write);
    n.cache.used(uint32_t(&f - n.frame.data()));
    return true;
  }
  unlatch(f);
  return false;
}

void Directory::access(int node, int thread, const Access& a) {
  if (gam_) wait_until(nodes_[size_t(node)]->queue.take(sim::scheduler()->now(), setup_.costs.serial_queue_ns));
  pass(setup_.costs.local_access_ns - setup_.costs.section_ns);
  if (buffers_.empty()) return perform(node, a);
  StoreBuffer& mine = *buffers_[size_t(node * setup_.work.threads + thread)];
  if (!a.write && !mine.holds(a)) return perform(node, a);
  pass(setup_.costs.section_ns);
  if (a.write) mine.push(a);
}

// The page, latched, with the right to what is wanted.
CachedPage& Directory::reach(int node, const Access& a) {
  CacheNode& n = *nodes_[size_t(node)];
  CachedPage* f = &frame_of(n, a.page);
  while (!latch(n, *f, a, node)) {
    pass(setup_.costs.local_hand_over_ns);
    f = &frame_of(n, a.page);
  }
  n.cache.used(uint32_t(f - n.frame.data()));
  return *f;
}

void Directory::perform(int node, const Access& a) {
  CachedPage& f = reach(node, a);
  pass(setup_.costs.section_ns);
  uint64_t& line = f.lines[a.line];
  if (a.write)
    line = truth_.write(a, line);
  else
    truth_.read(a, line);
  unlatch(f);
}

void Directory::fetch(int node, CachedPage& f, bool write) {
  f.fetching = true;
  while (!fetch_once(node, f, write)) {
  }
  f.fetching = false;
  f.turn = 0;
  f.mode = write ? Mode::kModified : Mode::kShared;
}

bool Directory::fetch_once(int node, CachedPage& f, bool write) {
  const uint64_t page = f.page;
  const int home = network_.memory_node(page);
  f.spoiled = false;
  f.turn = 0;
  network_.travel(node, home, message());
  network_.handle(home);
  Entry& e = entries_[page];
  while (gam_ && e.busy) sim::scheduler()->park(&e.wakeup, e.wakeup, kIdleNs);
  e.busy = gam_;

  // At the home: its owner and sharers now, and from now on (rivals.owner-at-home).
  const bool have = e.owner == kNobody && e.shares(node);
  const bool owned = e.owner != kNobody;
  const int source = owned ? e.owner : have && write ? node : e.supplier != kNobody ? e.supplier : home;
  uint64_t victims = 0;
  if (write) {
    victims = owned ? 0 : e.sharers & ~(uint64_t{1} << node);
    if (!owned && source != home) victims &= ~(uint64_t{1} << source);
    e.owner = node;
    e.turn++;
    e.supplier = kNobody;
    e.sharers = 0;
  } else {
    if (owned) e.sharers = uint64_t{1} << source, e.supplier = source;
    e.owner = kNobody;
    e.sharers |= uint64_t{1} << node;
  }
  f.turn = e.turn;
  if (source == home) f.lines = e.lines;

  int left = std::popcount(victims);
  uint32_t wakeup = 0;
  for (; victims; victims &= victims - 1) {
    const int victim = std::countr_zero(victims);
    nodes_[size_t(victim)]->crew.run([&, this, home, victim, node, page] {
      network_.travel(home, victim, message());
      network_.handle(victim);
      invalidate(victim, page);
      network_.travel(victim, node, message());
      if (--left == 0) wakeup = 1, sim::scheduler()->wake(&wakeup, 1);
    });
  }
  bool got = true;
  if (source == home || source == node) {
    network_.travel(home, node, source == home ? network_.gcl() : message());
  } else {
    network_.travel(home, source, message());
    network_.handle(source);
    got = take_from(source, owned, f, write);
    network_.travel(source, node, got ? network_.gcl() : message());
  }
  while (left > 0) sim::scheduler()->park(&wakeup, 0, kIdleNs);
  if (gam_)
    nodes_[size_t(node)]->crew.run([this, node, home, &e] {
      network_.travel(node, home, message());
      network_.handle(home);
      e.busy = false;
      e.wakeup++;
      sim::scheduler()->wake(&e.wakeup, 1);
    });
  return got && (write || !f.spoiled);
}

// The page leaves `owner`, or is copied there.  False: it is there no more; the home knows the node that took it.
bool Directory::take_from(int owner, bool as_owner, CachedPage& to, bool write) {
  CacheNode& n = *nodes_[size_t(owner)];
  const uint64_t page = to.page;
  CachedPage* f = n.find(page);
  if (as_owner && f) {
    f->latch(true);
    if (f->page != page || f->mode == Mode::kNone || (!write && to.spoiled)) {
      unlatch(*f);
      return false;
    }
    to.lines = f->lines;
    if (write)
      n.remove(*f);
    else
      f->mode = Mode::kShared;
    unlatch(*f);
    return true;
  }
  // A sharer: a writer that became the owner before us is waited for, one that comes after us is not
  // (rivals.invalidation-awaits-no-fetch).
  const auto after_us = [&] { return f->fetching && f->mode == Mode::kShared && (f->turn == 0 || f->turn > to.turn); };
  for (; f && f->latched() && !after_us(); f = n.find(page)) pass(setup_.costs.local_hand_over_ns);
  if (!f || f->mode == Mode::kNone || (!write && to.spoiled)) return false;
  to.lines = f->lines;
  if (!write) {
    f->mode = Mode::kShared;
  } else if (f->fetching) {
    f->mode = Mode::kNone;
  } else {
    n.remove(*f);
  }
  return true;
}

void Directory::invalidate(int node, uint64_t page) {
  CacheNode& n = *nodes_[size_t(node)];
  CachedPage* f = n.find(page);
  for (; f && f->latched() && !f->fetching; f = n.find(page)) pass(setup_.costs.local_hand_over_ns);
  if (!f) return;
  if (f->fetching) {
    f->mode = Mode::kNone;
    f->spoiled = true;
  } else {
    n.remove(*f);
  }
}

void Directory::evict_for(int node, int home) {
  CacheNode& n = *nodes_[size_t(node)];
  for (;;) {
    const uint32_t seen = n.wanted_wakeup;
    if (evict(node, home) > 0) continue;
    if (n.cache.propose()) {
      n.wanted_wakeup++;
      sim::scheduler()->wake(&n.wanted_wakeup, network_.memory());
    } else {
      sim::scheduler()->park(&n.wanted_wakeup, seen, kIdleNs);
    }
  }
}

// How many pages it tried.
int Directory::evict(int node, int home) {
  CacheNode& n = *nodes_[size_t(node)];
  uint32_t taken[kVictimsMax];
  CachedPage* frames[kVictimsMax];
  const int all = n.cache.take(home - network_.compute(), taken);
  int count = 0, done = 0;
  uint64_t bytes = message();
  for (int i = 0; i < all; i++) {
    CachedPage& f = n.frame[taken[i]];
    if (!f.idle()) {
      n.cache.keep(taken[i]);
      continue;
    }
    f.latch_at_once();
    frames[count++] = &f;
    if (f.mode == Mode::kModified || entries_[f.page].supplier == node) bytes += network_.gcl();
  }
  if (count == 0) return all;
  network_.travel(node, home, bytes);
  network_.handle(home);
  bool forgotten[kVictimsMax];
  for (int i = 0; i < count; i++) {  // rivals.told-frame-stays
    CachedPage& f = *frames[i];
    Entry& e = entries_[f.page];
    forgotten[i] = !e.busy && (e.owner == node || (e.owner == kNobody && e.shares(node)));
    if (f.mode == Mode::kNone) forgotten[i] = true;
    if (!forgotten[i] || f.mode == Mode::kNone) continue;
    if (e.owner == node || e.supplier == node) e.lines = f.lines;
    if (e.owner == node) e.owner = kNobody;
    if (e.supplier == node) e.supplier = kNobody;
    e.sharers &= ~(uint64_t{1} << node);
  }
  network_.travel(home, node, message());
  for (int i = 0; i < count; i++) {
    if (forgotten[i])
      n.remove(*frames[i]), done++;
    else
      n.cache.keep(uint32_t(frames[i] - n.frame.data()));
    unlatch(*frames[i]);
  }
  n.free_wakeup++;
  sim::scheduler()->wake(&n.free_wakeup, done);
  return all;
}

}  // namespace

std::unique_ptr<Protocol> make_directory(const Setup& setup, Network& network) {
  return std::make_unique<Directory>(setup, network, Kind::kScaleStore);
}
std::unique_ptr<Protocol> make_gam(const Setup& setup, Network& network, bool tso) {
  return std::make_unique<Directory>(setup, network, tso ? Kind::kGamTso : Kind::kGamSeq);
}

}  // namespace paper
