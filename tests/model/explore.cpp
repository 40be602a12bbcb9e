#include <algorithm>
#include <cstdio>

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
             (w.has_owner() && (!is_node(w.owner()) || id_of(index_of(w.owner())) != w.owner()));
  const NodeM* const owner = is_node(w.owner()) ? &s.node[index_of(w.owner())] : nullptr;
  const bool dead_owner = owner && (s.dead >> index_of(w.owner()) & 1);  // until its place is taken over
  for (int n = 0; n < kNodes; n++) {
    const NodeM& x = s.node[n];
    NodeId me = id_of(n);
    // A node that was granted early stands where the giver still does in the word (coherence.early-grant-bound).
    bool early = x.grant_in_flight && w.owner() == id_of(x.grant_in_flight - 1);
    bool named = w.owner() == me;
    if (s.dead >> n & 1) {
      // A node that takes over from a dead one has the redo of all dead ones, too.
      const bool taken = owner && (owner->op == LineOp::kTakeReadPosted || owner->op == LineOp::kTakeWritePosted);
      any |= x.redo;
      found |= x.redo && (dead_owner || taken || early);
      quiet &= (s.fenced >> n & 1) && !named && !w.readers().has(me) && x.batch.post == Post::kNone;
      continue;
    }
    bool giving_up = x.op == LineOp::kReleasePosted || x.op == LineOp::kHandOverPosted ||
                     x.op == LineOp::kInvalidatePosted || x.op == LineOp::kGiveUpPosted ||
                     x.op == LineOp::kFallbackPosted;
    bool leaving = giving_up || x.op == LineOp::kDowngradePosted;
    bool usable = x.msi != MsiState::kInvalid && !leaving;
    writers += usable && x.msi == MsiState::kModified;
    readers += usable && x.msi == MsiState::kShared;
    if (usable && !x.fresh) flag(at_, "X2");
    if (x.held == kHoldS && (x.msi == MsiState::kInvalid || giving_up)) flag(at_, "X8");
    if (x.held == kHoldX && (x.msi != MsiState::kModified || leaving)) flag(at_, "X8");
    any |= x.fresh || x.batch.write_new;
    found |= (named || early) && (x.fresh || x.batch.write_new);
    for (int j = 0; j < kNodes; j++) {
      any |= s.reply[n][j].fresh;
      quiet &= !s.reply[n][j].kind && !s.request[n][j];
    }
    quiet &= x.op == LineOp::kIdle && x.batch.post == Post::kNone && !x.undo;
    if (usable && x.msi == MsiState::kModified && !named && !early) flag(at_, "X6");
    // A node that a claim met shares until it has answered (coherence.claim-then-ask).
    const bool claimed = dead_owner || (owner && owner->op != LineOp::kDowngradePosted && (owner->sharers >> n & 1));
    const bool joins = early && owner && owner->sharers >> n & 1;  // its bit comes with the downgrade
    if (usable && x.msi == MsiState::kShared && !named &&
        ((w.has_owner() && !early && !claimed) || (!w.readers().has(me) && !joins)))
      flag(at_, "X6");
    sum += x.msi == MsiState::kModified ? LatchWord::owned_by(me).raw
           : x.msi == MsiState::kShared ? LatchWord::reader_bit(me)
                                        : 0;
  }
  if (writers > 1 || (writers && readers)) flag(at_, "X1");
  if (!any) flag(at_, "X3");
  if (!found) flag(at_, "X4");
  if (odd) flag(at_, "X5");
  if (quiet && sum != s.word) flag(at_, "X7");
}

// A cycle that serves no node (only == 0; or not node only - 1) although it takes every fair step that stays possible.
uint32_t Explorer::fair_cycle(int only) {
  size_t n = states_.size();
  auto& mark = memory_.mark;
  mark.assign(n, {});
  std::vector<uint32_t> stack;
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
    if (mark[root].index) continue;
    call.push_back({root, first_edge_[root]});
    ++counter, mark[root] = {counter, 1, counter};
    stack.push_back(root);
    while (!call.empty()) {
      Frame& f = call.back();
      uint32_t x = f.v;
      if (f.e < first_edge_[x + 1]) {
        const Edge& e = edges_[f.e++];
        if (!keep(e)) continue;
        Memory::Mark& to = mark[e.to];
        if (!to.index) {
          ++counter, to = {counter, 1, counter};
          stack.push_back(e.to);
          call.push_back({e.to, first_edge_[e.to]});
        } else if (to.on) {
          mark[x].low = std::min<uint32_t>(mark[x].low, to.index);
        }
        continue;
      }
      if (mark[x].low == mark[x].index) {
        std::vector<uint32_t> component;
        uint32_t y;
        do {
          y = stack.back();
          stack.pop_back();
          mark[y].on = 0;
          component.push_back(y);
        } while (y != x);
        std::sort(component.begin(), component.end());
        if (stuck(component)) return x + 1;
      }
      call.pop_back();
      if (!call.empty()) mark[call.back().v].low = std::min(mark[call.back().v].low, mark[x].low);
    }
  }
  return 0;
}

void Explorer::liveness() {
  auto &start = memory_.start, &fill = memory_.fill, &back = memory_.back;
  start.assign(states_.size() + 1, 0);
  back.assign(edges_.size(), 0);
  for (auto& e : edges_) start[e.to + 1]++;
  for (size_t i = 1; i < start.size(); i++) start[i] += start[i - 1];
  fill.clear();
  for (uint32_t i = 0; i < states_.size(); i++) fill.push_back(start[i]);
  for (uint32_t i = 0; i < states_.size(); i++)
    for (uint32_t e = first_edge_[i]; e < first_edge_[i + 1]; e++) back[fill[edges_[e].to]++] = i;
  // L1: wherever a node wants, it can still be served.  The bits of ok are the nodes that can be.
  std::vector<uint8_t> ok(states_.size(), 0);
  std::vector<uint32_t> changed;
  for (uint32_t i = 0; i < states_.size(); i++) {
    for (uint32_t e = first_edge_[i]; e < first_edge_[i + 1]; e++)
      if (edges_[e].served) ok[i] |= uint8_t(1 << (edges_[e].served - 1));
    if (ok[i]) changed.push_back(i);
  }
  while (!changed.empty()) {
    const uint32_t i = changed.back();
    changed.pop_back();
    for (uint32_t b = start[i]; b < start[i + 1]; b++) {
      if ((ok[back[b]] | ok[i]) == ok[back[b]]) continue;
      ok[back[b]] |= ok[i];
      changed.push_back(back[b]);
    }
  }
  for (uint32_t i = 0; i < states_.size(); i++) {
    uint8_t wanting = 0;
    for (int n = 0; n < kNodes; n++) wanting |= uint8_t(states_[i].node[n].want ? 1 << n : 0);
    if ((wanting & ~ok[i]) == 0) continue;
    flag(i, "L1");
    break;
  }
  if (uint32_t at = fair_cycle(0)) flag(at - 1, "L2");
  if (found_.empty() && states_.size() < 400'000)
    for (int n = 1; n <= kNodes; n++)
      if (fair_cycle(n)) starved_ += char('A' + n - 1);
}

Exploration Explorer::run() {
  State zero;
  memset(&zero, 0, sizeof zero);
  zero.pool = 1;
  intern(zero, hash(zero), "start");
  Exploration result;
  for (; at_ < states_.size(); at_++) {
    if (states_.size() > most_ || (states_.size() > enough_ && !found_.empty())) {
      result.cut = true;
      break;
    }
    first_edge_.push_back(uint32_t(edges_.size()));
    invariants();
    expand();
    take_next();
  }
  first_edge_.push_back(uint32_t(edges_.size()));
  if (!result.cut) liveness();
  result.states = states_.size();
  result.starved = starved_;
  for (auto& [name, at] : found_)
    result.broken += (result.broken.empty() ? "" : " ") + name + "@" + std::to_string(depth(at));
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
      result.trace += line;
    }
  }
  return result;
}

Exploration explore(const Variant& variant, size_t enough, size_t states_max) {
  static Memory memory;
  return Explorer(variant, enough, states_max, &memory).run();
}

}  // namespace coherence::model
