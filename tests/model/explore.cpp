#include <algorithm>
#include <cstdio>
#include <deque>

#include "explorer.hpp"

namespace coherence::model {

void Explorer::invariants() {
  const State& s = states_[at_];
  LatchWord w{s.word};
  int writers = 0, readers = 0;
  bool any = s.pool, found = s.pool, quiet = true;
  uint64_t sum = 0;
  uint64_t known = 0;
  for (int n = 0; n < kNodes; n++) known |= LatchWord::reader_bit(id_of(n));
  bool odd = (w.readers().bits & ~known) || !w.well_formed() ||
             (w.has_holder() && (!is_node(w.holder()) || id_of(index_of(w.holder())) != w.holder()));
  for (int n = 0; n < kNodes; n++) {
    const NodeM& x = s.node[n];
    NodeId me = id_of(n);
    // I20: who was granted early stands where the giver still does in the word.
    bool early = x.unsettled && w.has_holder() && w.holder() == id_of(x.unsettled - 1);
    bool named = w.has_holder() && w.holder() == me;
    if (s.dead == n + 1) {
      any |= x.fresh;
      found |= x.fresh && (named || early);
      quiet &= s.fenced && !named && !w.readers().has(me) && x.batch.post == Post::kNone;
      continue;
    }
    bool giving_up = x.op == LineOp::kReleasePosted || x.op == LineOp::kHandOverPosted ||
                     x.op == LineOp::kInvalidatePosted || x.op == LineOp::kGiveUpPosted ||
                     x.op == LineOp::kFallbackPosted;
    bool leaving = giving_up || x.op == LineOp::kDowngradePosted;
    bool usable = x.memo != Memo::kInvalid && !leaving;
    writers += usable && x.memo == Memo::kModified;
    readers += usable && x.memo == Memo::kShared;
    if (usable && !x.fresh) flag(at_, "X2");
    if (x.held == kHoldS && (x.memo == Memo::kInvalid || giving_up)) flag(at_, "X8");
    if (x.held == kHoldX && (x.memo != Memo::kModified || leaving)) flag(at_, "X8");
    any |= x.fresh || x.batch.write_new;
    found |= (named || early) && (x.fresh || x.batch.write_new);
    for (int j = 0; j < kNodes; j++) {
      any |= s.reply[n][j].fresh;
      quiet &= !s.reply[n][j].kind && !s.request[n][j];
    }
    quiet &= x.op == LineOp::kIdle && x.batch.post == Post::kNone && !x.undo;
    if (usable && x.memo == Memo::kModified && !named && !early) flag(at_, "X6");
    if (usable && x.memo == Memo::kShared && !named && ((w.has_holder() && !early) || !w.readers().has(me)))
      flag(at_, "X6");
    sum += x.memo == Memo::kModified ? LatchWord::owned_by(me).raw
           : x.memo == Memo::kShared ? LatchWord::reader_bit(me)
                                     : 0;
  }
  if (writers > 1 || (writers && readers)) flag(at_, "X1");
  if (!any) flag(at_, "X3");
  if (!found) flag(at_, "X4");
  if (odd) flag(at_, "X5");
  if (quiet && sum != s.word) flag(at_, "X7");
}

// A cycle that serves nobody (only == 0; or not node only - 1) although it takes every fair step that stays possible.
uint32_t Explorer::fair_cycle(int only) const {
  size_t n = states_.size();
  std::vector<uint32_t> index(n, 0), low(n, 0), stack;
  std::vector<uint8_t> on(n, 0);
  struct Frame {
    uint32_t v, e;
  };
  std::vector<Frame> call;
  uint32_t counter = 0;
  auto keep = [&](const Edge& e) { return only ? e.served != only : e.served == 0; };
  auto stuck = [&](const std::vector<uint32_t>& component) {
    uint64_t always = ~uint64_t{0}, taken = 0;
    bool cycle = component.size() > 1;
    for (uint32_t y : component) {
      uint64_t enabled = 0;
      for (uint32_t e = first_edge_[y]; e < first_edge_[y + 1]; e++) {
        if (edges_[e].fair) enabled |= uint64_t{1} << edges_[e].fair;
        if (edges_[e].fair && keep(edges_[e]) && std::binary_search(component.begin(), component.end(), edges_[e].to)) {
          taken |= uint64_t{1} << edges_[e].fair;
          cycle |= edges_[e].to == y;
        }
      }
      always &= enabled;
      bool wanting = false;
      for (int k = 0; k < kNodes; k++) wanting |= states_[y].node[k].want && (!only || only == k + 1);
      if (!wanting) return false;
    }
    return cycle && taken && (always & ~taken) == 0;
  };
  for (uint32_t root = 0; root < n; root++) {
    if (index[root]) continue;
    call.push_back({root, first_edge_[root]});
    index[root] = low[root] = ++counter;
    stack.push_back(root), on[root] = 1;
    while (!call.empty()) {
      Frame& f = call.back();
      uint32_t x = f.v;
      if (f.e < first_edge_[x + 1]) {
        const Edge& e = edges_[f.e++];
        if (!keep(e)) continue;
        if (!index[e.to]) {
          index[e.to] = low[e.to] = ++counter;
          stack.push_back(e.to), on[e.to] = 1;
          call.push_back({e.to, first_edge_[e.to]});
        } else if (on[e.to]) {
          low[x] = std::min(low[x], index[e.to]);
        }
        continue;
      }
      if (low[x] == index[x]) {
        std::vector<uint32_t> component;
        uint32_t y;
        do {
          y = stack.back();
          stack.pop_back();
          on[y] = 0;
          component.push_back(y);
        } while (y != x);
        std::sort(component.begin(), component.end());
        if (stuck(component)) return x + 1;
      }
      call.pop_back();
      if (!call.empty()) low[call.back().v] = std::min(low[call.back().v], low[x]);
    }
  }
  return 0;
}

void Explorer::liveness() {
  std::vector<uint32_t> start(states_.size() + 1, 0), back(edges_.size());
  for (auto& e : edges_) start[e.to + 1]++;
  for (size_t i = 1; i < start.size(); i++) start[i] += start[i - 1];
  std::vector<uint32_t> fill(start.begin(), start.end() - 1);
  for (uint32_t i = 0; i < states_.size(); i++)
    for (uint32_t e = first_edge_[i]; e < first_edge_[i + 1]; e++) back[fill[edges_[e].to]++] = i;
  for (int n = 1; n <= kNodes; n++) {  // L1: wherever a node wants, it can still be served
    std::vector<uint8_t> ok(states_.size(), 0);
    std::deque<uint32_t> queue;
    for (uint32_t i = 0; i < states_.size(); i++)
      for (uint32_t e = first_edge_[i]; e < first_edge_[i + 1]; e++)
        if (edges_[e].served == n && !ok[i]) ok[i] = 1, queue.push_back(i);
    for (; !queue.empty(); queue.pop_front())
      for (uint32_t b = start[queue.front()]; b < start[queue.front() + 1]; b++)
        if (!ok[back[b]]) ok[back[b]] = 1, queue.push_back(back[b]);
    for (uint32_t i = 0; i < states_.size(); i++)
      if (states_[i].node[n - 1].want && !ok[i]) {
        flag(i, "L1");
        break;
      }
  }
  if (uint32_t at = fair_cycle(0)) flag(at - 1, "L2");
  if (found_.empty() && states_.size() < 400'000)
    for (int n = 1; n <= kNodes; n++)
      if (fair_cycle(n)) starved_ += char('A' + n - 1);
}

Verdict Explorer::run() {
  State zero;
  memset(&zero, 0, sizeof zero);
  zero.pool = 1;
  intern(zero, "start");
  Verdict verdict;
  for (; at_ < states_.size(); at_++) {
    if (states_.size() > most_ || (states_.size() > enough_ && !found_.empty())) {
      verdict.cut = true;
      break;
    }
    first_edge_.push_back(uint32_t(edges_.size()));
    invariants();
    expand();
  }
  first_edge_.push_back(uint32_t(edges_.size()));
  if (!verdict.cut) liveness();
  verdict.states = states_.size();
  verdict.starved = starved_;
  for (auto& [name, at] : found_)
    verdict.broken += (verdict.broken.empty() ? "" : " ") + name + "@" + std::to_string(depth(at));
  if (!found_.empty()) {
    std::vector<uint32_t> path;
    for (uint32_t at = found_[0].second; at; at = parent_[at]) path.push_back(at);
    for (size_t i = path.size(); i-- > 0;) {
      const State& before = states_[parent_[path[i]]];
      const State& after = states_[path[i]];
      char who = '-';
      for (int n = 0; n < kNodes; n++)
        if (memcmp(&before.node[n], &after.node[n], sizeof(NodeM)) != 0) who = char('A' + n);
      char line[160];
      snprintf(line, sizeof line, "  %2zu %c %-40s word=(%d,%llx) pool=%d\n", path.size() - i, who, why_[path[i]],
               int(after.word >> 58), static_cast<unsigned long long>(after.word & LatchWord::kReaders), after.pool);
      verdict.trace += line;
    }
  }
  return verdict;
}

Verdict explore(const Variant& variant, size_t enough, size_t states_max) {
  return Explorer(variant, enough, states_max).run();
}

}  // namespace coherence::model
