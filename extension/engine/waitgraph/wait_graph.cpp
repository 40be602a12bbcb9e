#include "extension/engine/waitgraph/wait_graph.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace engine {

namespace {

bool same_party(const WaitParty& target, const WaitParty& waiter) {
  return target.node == waiter.node && target.pid == waiter.pid &&
         (target.ddl_transaction == 0 || target.ddl_transaction == waiter.ddl_transaction);
}

uint64_t process_key(const WaitParty& p) { return uint64_t{p.node} << 32 | p.pid; }

// Whether the lock manager that `from` sleeps in does not see that its target sleeps in `to`
// (waitgraph.cycle-must-jump).
bool jumps(const WaitRecord& from, const WaitRecord& to) {
  return from.kind != WaitKind::kLock || from.node != to.node || from.target_process != to.process;
}

auto rank(const WaitRecord& r) { return std::tuple(r.timeout_ms, -r.since_us, r.node, r.process, r.wait); }

}  // namespace

bool goes_first(const WaitRecord& a, const WaitRecord& b) { return rank(a) < rank(b); }

WaitGraph::WaitGraph(std::span<const WaitRecord> records) : records_(records), removed_(records.size(), false) {
  for (size_t i = 0; i < records.size(); ++i) {
    const WaitRecord& r = records[i];
    if (r.kind == WaitKind::kHolder) continue;
    if (r.kind == WaitKind::kReplies) continue;  // its proxies' waits are its edges
    Edge edge{int(i), r.may_give_way ? int(i) : -1};
    if (r.is_proxy()) {
      edge.gives_way = -1;
      for (size_t j = 0; j < records.size(); ++j)
        if (records[j].kind == WaitKind::kReplies && records[j].waiter.ddl_transaction == r.waiter.ddl_transaction &&
            same_party(r.waiter, records[j].waiter))
          edge.gives_way = int(j);
      if (edge.gives_way < 0) continue;  // waitgraph.proxy-while-waiting
    }
    // A proxy's primary does not know the coordinator's transaction; the coordinator does.
    const uint64_t txn = r.is_proxy() ? records[size_t(edge.gives_way)].waiter_txn : r.waiter_txn;
    if (txn != 0) by_txn_.push_back({txn, int(edges_.size())});
    by_process_.push_back({process_key(r.waiter), int(edges_.size())});
    edges_.push_back(edge);
  }
  const auto less = [](const Key& a, const Key& b) { return a.key < b.key; };
  std::stable_sort(by_txn_.begin(), by_txn_.end(), less);
  std::stable_sort(by_process_.begin(), by_process_.end(), less);
}

std::vector<int> WaitGraph::candidates(coherence::NodeId node, int64_t now_us) const {
  std::vector<int> found;
  for (size_t i = 0; i < records_.size(); ++i) {
    const WaitRecord& r = records_[i];
    if (r.node == node.value && r.may_give_way && has_lasted(r.since_us, now_us, int64_t{r.timeout_ms} * 1000))
      found.push_back(int(i));
  }
  std::sort(found.begin(), found.end(), [&](int a, int b) { return goes_first(record(a), record(b)); });
  return found;
}

void WaitGraph::remove(int i) { removed_[size_t(i)] = true; }

bool WaitGraph::usable(const Edge& edge, int victim) const {
  if (removed_[size_t(edge.record)]) return false;
  if (edge.gives_way < 0 || edge.gives_way == victim) return true;
  return !removed_[size_t(edge.gives_way)] && !goes_first(record(edge.gives_way), record(victim));
}

// The waits of the party that `from` waits for.
std::vector<int> WaitGraph::next_of(const WaitRecord& from) const {
  const bool remote = from.kind == WaitKind::kRemote;
  const uint64_t key = remote ? from.target_txn : process_key(from.target);
  const std::vector<Key>& index = remote ? by_txn_ : by_process_;
  std::vector<int> found;
  auto at = std::lower_bound(index.begin(), index.end(), key, [](const Key& k, uint64_t v) { return k.key < v; });
  for (; at != index.end() && at->key == key; ++at)
    if (remote || same_party(from.target, record(edges_[size_t(at->edge)].record).waiter)) found.push_back(at->edge);
  return found;
}

// Breadth first over (edge, whether the way to it has jumped); the shortest cycle is the clearest detail.
std::vector<int> WaitGraph::cycle_from(int start, int victim) const {
  constexpr int kUnseen = -2, kStart = -1;
  std::vector<int> came_from(edges_.size() * 2, kUnseen), queue{start * 2};
  came_from[size_t(start) * 2] = kStart;
  for (size_t at = 0; at < queue.size(); ++at) {
    const int state = queue[at];
    const WaitRecord& from = record(edges_[size_t(state / 2)].record);
    for (int next : next_of(from)) {
      const Edge& edge = edges_[size_t(next)];
      if (!usable(edge, victim)) continue;
      const bool jumped = (state & 1) || jumps(from, record(edge.record));
      if (next == start && jumped) {
        std::vector<int> cycle;
        for (int s = state; s != kStart; s = came_from[size_t(s)]) cycle.push_back(edges_[size_t(s / 2)].record);
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      const int there = next * 2 + jumped;
      // Another wait of the victim's party would make it a figure of eight.
      if (edge.gives_way == victim || came_from[size_t(there)] != kUnseen) continue;
      came_from[size_t(there)] = state;
      queue.push_back(there);
    }
  }
  return {};
}

std::vector<int> WaitGraph::cycle_through(int victim) const {
  for (size_t e = 0; e < edges_.size(); ++e) {
    if (edges_[e].gives_way != victim || !usable(edges_[e], victim)) continue;
    std::vector<int> cycle = cycle_from(int(e), victim);
    if (!cycle.empty()) return cycle;
  }
  return {};
}

std::string WaitGraph::describe(const std::vector<int>& cycle) const {
  std::string text;
  for (size_t i = 0; i < cycle.size(); ++i) {
    const WaitRecord& r = record(cycle[i]);
    const WaitRecord& next = record(cycle[(i + 1) % cycle.size()]);
    char line[256];
    int n = 0;
    if (r.is_proxy())
      n = snprintf(line, sizeof line, "Process %u of primary %u, for process %u of primary %u,", r.process, r.node,
                   r.waiter.pid, r.waiter.node);
    else
      n = snprintf(line, sizeof line, "Process %u of primary %u", r.process, r.node);
    snprintf(line + n, sizeof line - size_t(n), " waits for %.*s; blocked by process %u of primary %u.",
             int(kWaitTextBytes), r.what, next.waiter.pid, next.waiter.node);
    if (i > 0) text += '\n';
    text += line;
  }
  return text;
}

}  // namespace engine
