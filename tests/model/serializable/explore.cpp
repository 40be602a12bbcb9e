// The search: all configurations of programs, all interleavings of each, and the judge of their ends.
#include <algorithm>
#include <cstdio>

#include "model.hpp"

namespace serializable_model {

bool Program::writes(int item, int done) const {
  for (int i = 0; i < done; i++)
    if (serializable_model::writes(ops[size_t(i)]) && item_of(ops[size_t(i)]) == item) return true;
  return false;
}
bool Program::reads(int page, int done) const {
  for (int i = 0; i < done; i++)
    if (!serializable_model::writes(ops[size_t(i)]) && page_of(ops[size_t(i)]) == page) return true;
  return false;
}

uint8_t Base::look(const State& s, int t, int item, bool newest) const {
  uint8_t seen = 0, at = 0;
  for (int u = 0; u < kTxns; u++) {
    const Txn& y = s.txn[size_t(u)];
    const bool committed = y.status == Status::kCommitted && (newest || y.cts <= s.txn[size_t(t)].snapshot);
    if (!has_written(s, u, item) || (u != t && !committed)) continue;
    if (item == 2) {
      seen |= uint8_t(1 << u);
    } else if (u == t) {
      return uint8_t(t + 1);
    } else if (y.cts > at) {
      seen = uint8_t(u + 1), at = y.cts;
    }
  }
  return seen;
}

namespace {

constexpr const char* kOps[] = {"read a", "read b", "read range", "write a", "write b", "insert"};

std::string text_of(const Programs& programs) {
  std::string text;
  for (const Program& p : programs) {
    if (p.count == 0) continue;
    text += "T" + std::to_string(&p - programs.data()) + " on node " + std::to_string(p.node) +
            (p.read_only ? ", READ ONLY" : "") + ":";
    for (int i = 0; i < p.count; i++) text += std::string(i ? ", " : " ") + kOps[int(p.ops[size_t(i)])];
    text += "\n";
  }
  return text;
}

// Whether these, one after the other, see what they have seen and leave what was left.
bool explains(const State& s, const Programs& programs, const int* order, int count) {
  uint8_t state[kItems] = {};
  uint8_t behind = 0;
  for (int i = 0; i < count; i++) {
    const int t = order[i];
    const Txn& x = s.txn[size_t(t)];
    for (int j = i + 1; j < count; j++)
      if (x.before >> order[j] & 1) return false;  // it had ended before this one began
    for (int k = 0; k < x.done; k++) {
      const Op op = programs[size_t(t)].ops[size_t(k)];
      uint8_t& now = state[item_of(op)];
      if (op != Op::kInsert && x.seen[size_t(k)] != now) return false;
      if (writes(op)) now = op == Op::kInsert ? uint8_t(now | 1 << t) : uint8_t(t + 1);
    }
    behind |= uint8_t(1 << t);
  }
  for (int item = 0; item < 2; item++) {
    uint8_t newest = 0, at = 0;
    for (int t = 0; t < kTxns; t++)
      if ((behind >> t & 1) && programs[size_t(t)].writes(item, s.txn[size_t(t)].done) && s.txn[size_t(t)].cts > at)
        newest = uint8_t(t + 1), at = s.txn[size_t(t)].cts;
    if (state[item] != newest) return false;
  }
  return true;
}

const char* judge(const State& s, const Programs& programs) {
  int order[kTxns], count = 0;
  for (int t = 0; t < kTxns; t++)
    if (programs[size_t(t)].count != 0 && s.txn[size_t(t)].status == Status::kCommitted) order[count++] = t;
  if (count == 0) return "nobody has committed";
  do {
    if (explains(s, programs, order, count)) return nullptr;
  } while (std::next_permutation(order, order + count));
  return "no serial order";
}

class Explorer {
 public:
  Explorer(Make make, const Rules& rules, Verdict* verdict) : make_(make), rules_(rules), verdict_(*verdict) {}

  // False: something is broken.
  bool run(const Programs& programs) {
    programs_ = programs;
    protocol_ = make_(programs_, rules_, place_);
    for (const uint32_t slot : used_) table_[slot] = 0;
    used_.clear(), states_.clear(), from_.clear();
    State first;
    for (int t = 0; t < kTxns; t++)
      if (programs_[size_t(t)].count == 0) first.txn[size_t(t)].over = true;
    intern(first, "");
    const char* wrong = nullptr;
    for (at_ = 0; at_ < states_.size() && !wrong; at_++) wrong = expand();
    verdict_.configurations++;
    verdict_.states += states_.size();
    if (!wrong) return true;
    verdict_.broken = wrong;
    tell(at_ - 1);
    return false;
  }

 private:
  const char* expand() {
    const State s = states_[at_];
    bool over = true;
    emitted_ = 0;
    for (mover_ = 0; mover_ < kTxns; mover_++) {
      protocol_->moves(s, mover_, this, [](void* to, const State& next, const char* what) {
        auto& self = *static_cast<Explorer*>(to);
        self.emitted_++;
        self.intern(next, what);
      });
      over &= s.txn[size_t(mover_)].over;
    }
    if (over) {
      verdict_.ends++;
      return judge(s, programs_);
    }
    if (rules_.detects_deadlocks) end_deadlock(s);
    return emitted_ == 0 ? "nobody can go on" : nullptr;
  }
  // Any transaction of a circle of waits may be the one that is told.
  void end_deadlock(const State& s) {
    uint8_t waits[kTxns], reach[kTxns];
    for (int t = 0; t < kTxns; t++) waits[t] = reach[t] = protocol_->blockers(s, t);
    for (int round = 1; round < kTxns; round++)
      for (int t = 0; t < kTxns; t++)
        for (int u = 0; u < kTxns; u++)
          if (reach[t] >> u & 1) reach[t] |= waits[u];
    for (mover_ = 0; mover_ < kTxns; mover_++) {
      if (!(reach[mover_] >> mover_ & 1)) continue;
      State next = s;
      protocol_->abort(next, mover_);
      emitted_++;
      intern(next, "is rolled back: deadlock");
    }
  }

  void intern(const State& s, const char* what) {
    if (states_.size() * 2 >= table_.size()) grow();
    for (uint32_t i = slot_of(s);; i = (i + 1) & uint32_t(table_.size() - 1)) {
      if (table_[i] == 0) {
        states_.push_back(s);
        from_.push_back({at_, mover_, what});
        table_[i] = uint32_t(states_.size());
        used_.push_back(i);
        return;
      }
      if (states_[table_[i] - 1] == s) return;
    }
  }
  uint32_t slot_of(const State& s) const {
    uint64_t h = 1469598103934665603u, words[sizeof(State) / 8];
    memcpy(words, &s, sizeof s);
    for (const uint64_t w : words) h = (h ^ w) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return uint32_t(h >> 32) & uint32_t(table_.size() - 1);
  }
  void grow() {
    table_.assign(table_.size() * 2, 0);
    used_.clear();
    for (uint32_t n = 0; n < states_.size(); n++) {
      uint32_t i = slot_of(states_[n]);
      while (table_[i]) i = (i + 1) & uint32_t(table_.size() - 1);
      table_[i] = n + 1;
      used_.push_back(i);
    }
  }
  void tell(uint32_t at) {
    std::vector<std::string> steps;
    for (; at != 0; at = from_[at].state)
      steps.push_back("T" + std::to_string(from_[at].mover) + " " + from_[at].what + "\n");
    verdict_.trace = text_of(programs_);
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) verdict_.trace += *step;
  }

  struct From {
    uint32_t state;
    int mover;
    const char* what;
  };
  const Make make_;
  const Rules& rules_;
  Verdict& verdict_;
  Programs programs_;
  alignas(64) char place_[64];
  Protocol* protocol_ = nullptr;
  std::vector<State> states_;
  std::vector<From> from_;
  std::vector<uint32_t> table_ = std::vector<uint32_t>(1 << 12), used_;
  uint32_t at_ = 0;
  int mover_ = 0, emitted_ = 0;
};

// --- Configurations --------------------------------------------------------------------------------------------------

// What is read or written again says nothing new.
bool says_something(const Program& p) {
  for (int i = 0; i < p.count; i++)
    for (int j = 0; j < i; j++) {
      const Op one = p.ops[size_t(j)], two = p.ops[size_t(i)];
      if (one == two || (item_of(one) == item_of(two) && writes(one) && two != Op::kReadRange)) return false;
    }
  return true;
}
std::vector<Program> all_programs(int ops, int nodes, bool read_only) {
  std::vector<Program> found{{}}, longer{{}};
  for (int count = 1; count <= ops; count++) {
    std::vector<Program> next;
    for (const Program& p : longer)
      for (int op = 0; op < 6; op++) {
        Program q = p;
        q.ops[q.count++] = Op(op);
        if (says_something(q)) next.push_back(q);
      }
    longer = next;
    for (Program p : next)
      for (int node = 0; node < nodes; node++) {
        p.node = uint8_t(node);
        p.read_only = false;
        found.push_back(p);
        p.read_only = true;
        if (read_only && std::none_of(p.ops.begin(), p.ops.begin() + p.count, writes)) found.push_back(p);
      }
  }
  return found;
}

Program with_rows_swapped(Program p) {
  for (int i = 0; i < p.count; i++)
    if (Op& op = p.ops[size_t(i)]; item_of(op) < 2) op = Op(int(op) ^ (writes(op) ? 7 : 1));
  return p;
}

// Whether each meets another one on a page that one of them writes, and all of them hang together.
bool meet(const Programs& programs) {
  uint8_t reach = 0, all = 0;
  for (int t = 0; t < kTxns; t++)
    if (programs[size_t(t)].count != 0) all |= uint8_t(1 << t);
  reach = uint8_t(all & -all);
  const auto touches = [&](int t, int page, bool to_write) {
    const Program& p = programs[size_t(t)];
    return std::any_of(p.ops.begin(), p.ops.begin() + p.count,
                       [&](Op op) { return page_of(op) == page && (writes(op) || !to_write); });
  };
  for (int round = 0; round < kTxns; round++)
    for (int t = 0; t < kTxns; t++)
      for (int u = 0; u < kTxns; u++)
        for (int page = 0; page < kPages; page++)
          if ((reach >> t & 1) && ((touches(t, page, true) && touches(u, page, false)) ||
                                   (touches(t, page, false) && touches(u, page, true))))
            reach |= uint8_t(1 << u);
  return reach == all && (all & (all - 1)) != 0;
}

}  // namespace

Verdict explore(Make make, const Rules& rules, int ops, int nodes, bool read_only, int every) {
  Verdict verdict;
  Explorer explorer(make, rules, &verdict);
  const std::vector<Program> programs = all_programs(ops, nodes, read_only);
  const auto number_of = [&](const Program& p) {
    return int(std::find(programs.begin(), programs.end(), p) - programs.begin());
  };
  // Of what is the same with rows or nodes exchanged, one.
  std::vector<int> rows, sides;
  for (Program p : programs) {
    rows.push_back(number_of(with_rows_swapped(p)));
    if (p.count != 0 && nodes > 1) p.node ^= 1;
    sides.push_back(number_of(p));
  }
  const int n = int(programs.size());
  int met = 0;
  for (int i = 0; i < n; i++)
    for (int j = i; j < n; j++)
      for (int k = j; k < n; k++) {
        const std::array<int, kTxns> is{i, j, k};
        bool first = true;
        for (int image = 1; image < 4; image++) {
          std::array<int, kTxns> other = is;
          for (int& one : other) one = image & 1 ? rows[size_t(one)] : one;
          for (int& one : other) one = image & 2 ? sides[size_t(one)] : one;
          std::sort(other.begin(), other.end());
          first &= is <= other;
        }
        const Programs chosen{programs[size_t(i)], programs[size_t(j)], programs[size_t(k)]};
        if (!first || !meet(chosen) || met++ % every != 0) continue;
        if (!explorer.run(chosen)) return verdict;
      }
  return verdict;
}

}  // namespace serializable_model
