// The checkers of buffer pools: waiting users, what is left at rest and when all have gone.
#include <algorithm>
#include <cstring>

#include "pool_cluster.hpp"
#include "tests/support/pool_bytes.hpp"

namespace sim {
namespace {

// The number of entries of a frame table (frames.bucket-is-cache-line).
struct TableContents {
  int entries = 0, away = 0, locked = 0;
};
TableContents contents_of(const bufmgr::BufferPool& pool, const std::byte* table) {
  TableContents sum;
  const size_t buckets = bufmgr::FrameTable::bytes_for(pool.frames()) / 64 - 1;
  for (size_t b = 0; b < buckets; b++) {
    uint64_t word[8];
    memcpy(word, table + 64 * (b + 1), sizeof word);
    sum.locked += uint32_t(word[0]) != 0;
    sum.away += int(word[0] >> 32);
    for (int slot = 1; slot < 8; slot++) sum.entries += word[slot] != 0;
  }
  return sum;
}

// The frames of the list, taken out and put back; more than there are if the list never ends.
std::vector<uint32_t> frames_of(bufmgr::FreeList list, uint32_t frames) {
  std::vector<uint32_t> free;
  while (free.size() <= frames) {
    const uint32_t frame = list.pop();
    if (frame == bufmgr::kNoFrame) break;
    free.push_back(frame);
  }
  if (free.size() <= frames) std::for_each(free.rbegin(), free.rend(), [&](uint32_t f) { list.push(f); });
  return free;
}

}  // namespace

bool PoolCluster::working() const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& m) {
    return lives(*m) && (m->users > 0 || (m->serving && m->id.value == options_.leaver && m->former.empty()));
  });
}

bool PoolCluster::serving() const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& m) { return lives(*m) && m->serving; });
}

bool PoolCluster::at_rest() const {
  if (!scheduler()->everybody_waits()) return false;
  return std::all_of(members_.begin(), members_.end(), [this](const auto& m) {
    if (!lives(*m)) return true;
    if (scheduler()->dying(m->id.value)) return false;  // its dead process may have held anything
    const Held held = m->node().held();
    return held.sessions <= 2 && held.operations == 0 && held.parked == 0 && held.request_slots == 0 &&
           m->calls_heard == m->shared().provider_called.load();
  });
}

void PoolCluster::check_rest() const {
  for (const auto& m : members_) {
    if (!lives(*m)) continue;
    const Held held = m->node().held();
    if (held.shared || held.exclusive || held.operations || held.parked || held.holds || held.request_slots ||
        held.sessions != 2)
      object(Checker::kLeaks,
             "node %d at rest: %u shared and %u exclusive latches, %u operations, %u parked, %u holds, %u request "
             "slots, %u sessions",
             m->id.value, held.shared, held.exclusive, held.operations, held.parked, held.holds, held.request_slots,
             held.sessions);
    if (const int64_t reserved = m->pool->ring().reserved_now())
      object(Checker::kLeaks, "node %d at rest: %ld bytes of its ring are reserved", m->id.value, reserved);
    check_frames(*m);
  }
  Pool& pool = members_[0]->pool->coherence_pool();
  for (int page = 0; page < int(pages_.size()); page++) {
    const uint64_t word = pool.peek_latch(id(page)).raw;
    uint64_t sum = 0;
    for (const auto& m : members_)
      if (const Line* line = lives(*m) ? m->pool->find(id(page)) : nullptr) {
        sum += line->msi() == MsiState::kShared ? LatchWord::add_reader(m->id) : 0;
        sum += line->msi() == MsiState::kModified ? LatchWord::owned_by(m->id).raw : 0;
      }
    if (word != sum)
      object(Checker::kRest, "page %d: the latch word is %lx, the MSI states sum up to %lx", page, word, sum);
  }
}

// A free frame has no page; any other frame is the one that the table has for its page.
void PoolCluster::check_frames(const PoolMember& m) const {
  const bufmgr::ArenaPlan plan = plan_of(m);
  std::byte* const memory = m.node().private_memory();
  const uint32_t frames = m.pool->frames();
  const std::vector<uint32_t> free = frames_of(bufmgr::FreeList(memory + plan.free), frames);
  std::vector<int> times(frames, 0);
  for (uint32_t f : free) times[f]++;
  int published = 0;
  for (uint32_t f = 0; f < frames; f++) {
    const Line& line = m.node().line(f);
    const bool used = line.page().valid();
    published += used;
    if (used && m.pool->find(line.page()) != &line)
      object(Checker::kLeaks, "node %d: frame %u has page %d, and the frame table does not say so", m.id.value, f,
             index_of(line.page()));
    if (times[f] != (used ? 0 : 1))
      object(Checker::kLeaks, "node %d: frame %u is %s, and %d times in the free list", m.id.value, f,
             used ? "in use" : "free", times[f]);
  }
  if (free.size() != m.pool->free_frames())
    object(Checker::kLeaks, "node %d: %zu free frames, counted as %u", m.id.value, free.size(), m.pool->free_frames());
  const TableContents table = contents_of(*m.pool, memory + plan.table);
  if (table.entries != published || table.locked || table.away > published)
    object(Checker::kLeaks, "node %d: %d frames have pages, %d entries in the frame table, %d of them away, %d locks",
           m.id.value, published, table.entries, table.away, table.locked);
}

void PoolCluster::check_left() {
  const auto last = std::count_if(members_.begin(), members_.end(), [](const auto& m) { return m->last; });
  if (last != 1) object(Checker::kLeaks, "%d nodes left as the last", int(last));
  for (const auto& m : members_) {
    if (!lives(*m)) continue;
    const Held held = m->node().held();
    if (held.pages || held.sessions || held.exclusive || held.shared || m->pool->ring().used())
      object(Checker::kLeaks, "node %d left with %u pages, %u sessions, %lu bytes of redo", m->id.value, held.pages,
             held.sessions, m->pool->ring().used());
  }
  Pool& pool = members_[0]->pool->coherence_pool();
  for (int page = 0; page < int(pages_.size()); page++) {
    if (const uint64_t word = pool.peek_latch(id(page)).raw)
      object(Checker::kRest, "page %d: all have left, and the latch word is %lx", page, word);
    uint64_t value, version;
    memcpy(&version, gcl_test::pool_bytes(pool, id(page)), sizeof version);
    memcpy(&value, gcl_test::pool_bytes(pool, id(page)) + kValueAt[0], sizeof value);
    if (value != oracle_.value(page) || version != versions_[size_t(page)])
      object(Checker::kLastWrite, "page %d: all have left, and the pool says %lu (version %lu) instead of %lu (%lu)",
             page, value, version, oracle_.value(page), versions_[size_t(page)]);
  }
  Random chance(Random::mix(options_.seed ^ 0x1e5));
  if (options_.loses_memory) check_restart(chance, true);
}

// Each page is at some version that it has had; at least at the one that the pool's memory says, for that was logged
// before.
void PoolCluster::check_restart(Random& chance, bool all_have_left) {
  const std::vector<PoolDisk::NodeLog> logs = logs_of_all();
  if (!options_.slow_checkpoints && !all_have_left && chance.one_in(2)) return disk_.make_checkpoint(logs, chance);
  PoolDisk::Images made;
  Problem why;
  if (!disk_.restart(logs, !chance.one_in(4), chance, &made, &why))
    return object(Checker::kRestart, "memory is lost, and the logs do not make the pool: %s", why.text);
  Pool& pool = members_[0]->pool->coherence_pool();
  static constexpr PoolDisk::Image kZeros;
  for (int page = 0; page < int(pages_.size()); page++) {
    const auto found = made.find(id(page).raw);
    const std::byte* const bytes = found == made.end() ? kZeros.bytes : found->second->bytes;
    uint64_t version, in_pool, value;
    memcpy(&version, bytes, sizeof version);
    memcpy(&in_pool, gcl_test::pool_bytes(pool, id(page)), sizeof in_pool);
    const uint64_t most = versions_[size_t(page)], least = all_have_left ? most : in_pool;
    if (version < least || version > most)
      return object(Checker::kRestart, "page %d is made again as of version %lu, of %lu to %lu", page, version, least,
                    most);
    for (const uint32_t at : kValueAt) {
      memcpy(&value, bytes + at, sizeof value);
      if (value != value_at(page, version))
        return object(Checker::kRestart, "page %d is made again with %lu at version %lu, instead of %lu", page, value,
                      version, value_at(page, version));
    }
    for (uint64_t i = 0; i < kFormer; i++) {
      const uint64_t before = i < version ? value_at(page, version - 1 - i) : 0;
      memcpy(&value, bytes + kFormerAt + 8 * i, sizeof value);
      if (value != before)
        return object(Checker::kRestart,
                      "page %d is made again at version %lu, and %lu changes ago it had %lu, not %lu", page, version,
                      i + 1, before, value);
    }
  }
}

void PoolCluster::check_refuses() const {
  Problem problem;
  const auto again = bufmgr::BufferPool::create_node(node_options(members_[0]->id), &problem);
  if (again.ok() || again.error() != Errc::kFenced)
    object(Checker::kFence, "a pool where a node died is joined again: %s", problem.text);
}

void PoolCluster::check_waits() {
  const uint64_t now = scheduler()->now();
  if (fenced() && fenced_ns_ == 0) fenced_ns_ = now;
  uint64_t paused = 0;
  if (options_.survives && fenced())
    object(Checker::kFence, "node %d died, and the pool is fenced: %s", options_.crash_node,
           members_[0]->node().fence_reason());
  for (int n = 0; n < options_.nodes; n++)
    if (!options_.survives && crashed(n) && !withdrawn(n)) {
      const uint64_t since = scheduler()->crashed_ns(n);
      for (int k = 0; k < options_.nodes; k++) paused += scheduler()->paused_ns(k, since, now);
      if (!fenced() && now > since + kFenceNsMax + paused)
        object(Checker::kFence, "node %d crashed at %lu ns, and the pool is not fenced", n, since);
    }
  for (const auto& w : waiting_) {
    const int node = int(&w - waiting_.data()) / options_.threads;
    if (w->since == 0 || crashed(node)) continue;
    if (fenced_ns_ && now > std::max(w->since, fenced_ns_) + kSliceNsMax + options_.slow_stall_ns_max(node) + paused)
      object(Checker::kFence, "a wait goes on, long after the pool was fenced");
  }
}

int PoolCluster::page_of(const LineState& state) const {
  for (const auto& m : members_)
    for (uint32_t i = 0; m->pool && i < m->pool->frames(); i++)
      if (const Line& line = m->node().line(i); &fields(line).state == &state)
        return line.page().valid() ? index_of(line.page()) : -1;
  return -1;
}

// A session lingers between taking its place in the ring and writing there. Others go on behind it; if the node dies
// then, as here it may, there is a hole before their records.
void PoolCluster::linger_before(const Op& op) {
  const bufmgr::RegionSpan rings = members_[0]->pool->region(bufmgr::Region::kRings);
  const bool in_ring = op.at.node() == rings.at.node() && op.at.offset() >= rings.at.offset() &&
                       op.at.offset() < rings.at.offset() + rings.bytes;
  Random& random = scheduler()->random();
  if (!in_ring || !random.one_in(6)) return;
  const int node = scheduler()->node();
  if (!is_targeted() && node == options_.crash_node && !deaths_.nodes && !scheduler()->dying(node) && random.one_in(4))
    scheduler()->crash_soon(node, random.between(20, 600));
  scheduler()->sleep(random.below(1'000 * kUs));
}

// Checker 10: what leaves is in the log that is flushed.
void PoolCluster::about_to(const Op& op) {
  if (options_.loses_memory && op.verb == Verb::kWrite && scheduler()->node() >= 0) linger_before(op);
  if (op.verb != Verb::kWrite || !options_.lazy_log || scheduler()->node() < 0) return;
  const PoolMember& m = *members_[size_t(scheduler()->node())];
  const auto* from = static_cast<const std::byte*>(op.local);
  const std::byte* frames = m.node().frame(0u);
  if (from < frames || from >= frames + uint64_t(options_.frames) * kPageSize) return;  // of the ring
  const Line& line = m.node().line(uint32_t((from - frames) / int64_t{kPageSize}));
  if (line.lsn().value > m.log.truly_flushed())
    object(Checker::kLog, "page %d leaves node %d at log position %lu, flushed is %lu", index_of(line.page()),
           m.id.value, line.lsn().value, m.log.truly_flushed());
}

}  // namespace sim
