// The cluster's checkers: of waiting users, of the state at rest, and of what is left when all have gone.
#include <algorithm>
#include <cstring>

#include "cluster.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "tests/support/pool_bytes.hpp"

namespace sim {
namespace {

unsigned long long printable(uint64_t n) { return n; }

}  // namespace

bool Cluster::working() const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& m) {
    return lives(*m) && (m->users > 0 || (m->serving && int(m->former.size()) + 1 < lives_of(*m)));
  });
}

bool Cluster::serving() const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& m) { return lives(*m) && m->serving; });
}

bool Cluster::at_rest() const {
  if (!scheduler()->everybody_waits() || probe_.pending(members())) return false;
  for (const auto& m : members_) {
    if (!lives(*m)) continue;
    for (uint32_t i = 0; i < m->frames; i++) {
      const LineState& s = fields(m->node->line(i)).state;
      if (s.op != LineOp::kIdle || s.parked_count) return false;
    }
    const Held held = m->node->held();
    if (held.request_slots > 0 || (options_.survives && held.sessions != 1)) return false;  // it sweeps
  }
  return true;
}

void Cluster::check_rest() const {
  for (const auto& m : members_) {
    if (!lives(*m)) continue;
    const Held held = m->node->held();
    if (held.shared || held.exclusive || held.operations || held.parked || held.holds || held.request_slots ||
        held.sessions != 1)
      object(
          Checker::kLeaks,
          "node %d at rest: %u shared and %u exclusive latches, %u operations, %u parked, %u holds, %u request slots, "
          "%u sessions",
          m->id.value, held.shared, held.exclusive, held.operations, held.parked, held.holds, held.request_slots,
          held.sessions);
    uint32_t published = 0;
    for (const Line* line : m->directory.lines) published += line != nullptr;
    if (published != held.pages || published + m->free.size() != m->frames)
      object(Checker::kLeaks, "node %d at rest: %u lines published, %u with pages, %zu of %u frames free", m->id.value,
             published, held.pages, m->free.size(), m->frames);
  }
  for (int page = 0; page < options_.pages; page++) {
    const uint64_t word = pool_->peek_latch(Directory::page(page)).raw;
    uint64_t sum = 0;
    for (const auto& m : members_)
      if (!lives(*m)) {
        continue;
      } else if (const Line* line = m->directory.lines[size_t(page)]) {
        sum += line->msi() == MsiState::kShared ? LatchWord::add_reader(m->id) : 0;
        sum += line->msi() == MsiState::kModified ? LatchWord::owned_by(m->id).raw : 0;
      }
    if (word != sum)
      object(Checker::kRest, "page %d: the latch word is %llx, the MSI states sum up to %llx", page, printable(word),
             printable(sum));
  }
}

void Cluster::check_left() const {
  if (cut_off() && !options_.survives)
    object(Checker::kFence, "a batch had no known outcome, and the pool is not fenced");
  const auto last = std::count_if(members_.begin(), members_.end(), [](const auto& m) { return m->last; });
  // One whose withdrawal took place may have died before it heard of it.
  bool told = true;
  for (int n = 0; n < options_.nodes; n++) told &= !options_.far_members || !crashed(n);
  if (last > 1 || (last == 0 && told)) object(Checker::kLeaks, "%d nodes left as the last", int(last));
  for (const auto& m : members_) {
    if (!lives(*m)) continue;
    const Held held = m->node->held();
    if (held.pages || held.sessions || held.exclusive || held.shared)
      object(Checker::kLeaks, "node %d left with %u pages, %u sessions", m->id.value, held.pages, held.sessions);
  }
  for (int page = 0; page < options_.pages; page++) {
    if (const uint64_t word = pool_->peek_latch(Directory::page(page)).raw)
      object(Checker::kRest, "page %d: all have left, and the latch word is %llx", page, printable(word));
    uint64_t value;
    memcpy(&value, gcl_test::pool_bytes(*pool_, Directory::page(page)), sizeof value);
    if (value != oracle_.value(page))
      object(Checker::kLastWrite, "page %d: all have left, and the pool says %llu instead of %llu", page,
             printable(value), printable(oracle_.value(page)));
  }
}

void Cluster::check_refuses() const {
  if (cut_off()) {
    const std::string reason = members().fence_reason();
    bool right = false;
    for (NodeSet left = far_.broken(); !left.empty(); left = left.without(left.first()))
      right |=
          reason == "node " + std::to_string(left.first().value) + " lost a memory node in the middle of an operation";
    if (!right) object(Checker::kFence, "a node was cut off, and the pool's fence says: %s", reason.c_str());
  }
  Problem problem;
  auto again = LocalPool::open({.path = path_.c_str(), .compatibility = "sim=1\n"}, &problem);
  if (again.ok() || again.error() != Errc::kFenced)
    object(Checker::kFence, "a pool where a node died is opened again: %s", problem.text);
  auto joined = Node::join(*pool_, members_[0]->id, arena_spec(options_), &problem, shm_transport());
  if (joined.ok() || joined.error() != Errc::kFenced)
    object(Checker::kFence, "a pool where a node died is joined again: %s", problem.text);
}

// A node that stood still meanwhile, or died, is not to blame, and neither are those that waited for it.
uint64_t Cluster::allowed_ns(const Waiting& w) const {
  uint64_t ns = options_.fairness_ns_max();
  for (int n = 0; n < options_.nodes; n++) ns += scheduler()->paused_ns(n, w.since, scheduler()->now());
  if (options_.may_fence() || options_.survives)
    ns += (1 + 2 * options_.survives) * kFenceNsMax + options_.orphaned_ns + kSliceNsMax;
  return ns;
}

// Its session polls all the time, but where it stands still.
void Cluster::check_cut_off(uint64_t now) const {
  if (!cut_off() || fenced()) return;
  uint64_t ns = kFenceNsMax;
  for (int n = 0; n < options_.nodes; n++)
    ns += scheduler()->paused_ns(n, far_.broken_ns(), now) + options_.slow_stall_ns_max(n);
  if (now <= far_.broken_ns() + ns) return;
  bool one_goes_on = !options_.survives;
  for (NodeSet left = far_.broken(); options_.survives && !left.empty(); left = left.without(left.first())) {
    const Member& m = *members_[left.first().value];  // where peers repair, it alone ends
    one_goes_on |= !m.was_cut_off && lives(m) && m.former.empty();
  }
  if (one_goes_on)
    object(Checker::kFence, "a batch had no known outcome at %llu ns, and the pool is not fenced",
           printable(far_.broken_ns()));
}

void Cluster::check_waits() {
  const uint64_t now = scheduler()->now();
  if (fenced() && fenced_ns_ == 0) fenced_ns_ = now;
  check_cut_off(now);
  probe_.check(members(), options_);
  uint64_t paused = 0;
  for (int n = 0; n < options_.nodes; n++)
    if (options_.survives && fenced())
      object(Checker::kFence, "node %d died, and the pool is fenced: %s", options_.crash_node,
             members().fence_reason());
    else if (!options_.survives && crashed(n) && !withdrawn(n)) {
      const uint64_t since = scheduler()->crashed_ns(n);
      for (int k = 0; k < options_.nodes; k++) paused += scheduler()->paused_ns(k, since, now);
      if (!fenced() && now > since + kFenceNsMax + paused)
        object(Checker::kFence, "node %d crashed at %llu ns, and the pool is not fenced", n, printable(since));
    }
  for (const auto& w : waiting_) {
    const int node = int(&w - waiting_.data()) / options_.threads;
    if (w->since == 0 || crashed(node)) continue;
    const uint64_t from = std::max(w->since, fenced_ns_);
    const uint64_t still = scheduler()->paused_ns(node, from, now) + options_.slow_stall_ns_max(node);
    if (fenced_ns_ && now > from + kSliceNsMax + still + paused)
      object(Checker::kFence, "user %d of node %d still waits, since %llu ns; the pool was fenced at %llu ns",
             int(&w - waiting_.data()) % options_.threads, node, printable(w->since), printable(fenced_ns_));
    if (now - w->since > allowed_ns(*w))
      object(Checker::kFairness, "fiber %d has waited for a latch for %llu us", int(&w - waiting_.data()),
             printable((now - w->since) / 1000));
  }
}

void Cluster::waited(Waiting& w, bool is_fenced) {
  const uint64_t now = scheduler()->now();
  const uint64_t ns = now - w.since;
  if (is_fenced || fenced_ns_) {
    w.since = 0;
    return;
  }
  if (ns > allowed_ns(w)) object(Checker::kFairness, "a latch was waited for for %llu us", printable(ns / 1000));
  uint64_t paused = 0;
  for (int n = 0; n < options_.nodes; n++) paused += scheduler()->paused_ns(n, w.since, now);
  if (!options_.may_fence() && !options_.survives)
    longest_wait_ns_ = std::max(longest_wait_ns_, ns - std::min(ns, paused));
  w.since = 0;
}

int Cluster::page_of(const LineState& state) const {
  for (const auto& m : members_)
    for (uint32_t i = 0; i < m->frames; i++)
      if (const Line& line = m->node->line(i); &fields(line).state == &state)
        return line.page().valid() ? Directory::index_of(line.page()) : -1;
  return -1;
}

void Cluster::confirm(const LineState& state) {
  for (const auto& m : members_)
    for (uint32_t i = 0; i < m->frames; i++)
      if (&fields(m->node->line(i)).state == &state) m->node->parts().in_flight[i].store(0, std::memory_order_relaxed);
}

// Checker 10: what leaves is in the log that is flushed.
void Cluster::about_to(const Op& op) {
  if (op.verb != Verb::kWrite || !options_.lazy_log || scheduler()->node() < 0) return;
  const Member& m = *members_[size_t(scheduler()->node())];
  const auto* from = static_cast<const std::byte*>(op.local);
  const auto frame = uint32_t((from - m.node->frame(0u)) / int64_t{kPageSize});
  const Lsn lsn = m.node->line(frame).lsn();
  if (lsn.value > m.horizon.flushed_lsn)
    object(Checker::kLog, "page %d leaves node %d at log position %llu, flushed is %llu",
           Directory::index_of(m.node->line(frame).page()), m.id.value, printable(lsn.value),
           printable(m.horizon.flushed_lsn));
}

}  // namespace sim
