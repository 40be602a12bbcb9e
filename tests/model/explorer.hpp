// The search itself, for explore.cpp (states, invariants, liveness), moves.cpp, batches.cpp, leaving.cpp and deaths.cpp
// (what can happen in a state).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model.hpp"
#include "store.hpp"

namespace coherence::model {

// Fairness classes.
enum Fair : uint8_t {
  kEnvironment = 0,
  kFence = 1,
  kRepair = 4,
  kPerNode = 7,
  kPerNodeCount = 14
};  // kFence, kRepair: each + a node
enum Kind { kComplete, kExecute, kUndo, kUse, kServe, kFlush, kGone, kDrop, kRequest, kReply = kRequest + kNodes };
inline uint8_t fair(int n, int kind) { return uint8_t(kPerNode + n * kPerNodeCount + kind); }

// What explorations fill, one after the other.
struct Memory {
  Store<State> states;
  Store<uint64_t> table;
  Store<uint32_t> parent, first_edge;
  Store<const char*> why;
  Store<Edge> edges;
  // For liveness.
  Store<uint32_t> start, fill, back;
  struct Mark {
    uint32_t index : 31, on : 1, low;  // when it was first come to; whether on the stack; the first it can get back to
  };
  Store<Mark> mark;
  void clear() { states.clear(), table.clear(), parent.clear(), first_edge.clear(), why.clear(), edges.clear(); }
};

class Explorer {
 public:
  Explorer(const Variant& variant, size_t enough, size_t most, Memory* memory)
      : v(variant), enough_(enough), most_(most), memory_(*memory) {
    memory_.clear();
    table_.assign(1 << 16, 0);
  }
  Exploration run();

 private:
  // --- states --------------------------------------------------------------------------------------------------------
  static uint64_t hash(const State& s) {
    uint64_t h = 1469598103934665603u, x[sizeof(State) / 8];
    memcpy(x, &s, sizeof s);
    for (uint64_t w : x) h = (h ^ w) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return h;
  }
  // An entry of the table is a state's number + 1, and above it the lower half of its hash.
  uint32_t intern(const State& s, uint64_t hashed, const char* why) {
    if (states_.size() * 2 > table_.size()) grow();
    const uint64_t half = hashed << 32, mask = table_.size() - 1;
    uint64_t i = half >> 32 & mask;
    for (; table_[i]; i = (i + 1) & mask)
      if ((table_[i] ^ half) >> 32 == 0 && states_[uint32_t(table_[i]) - 1] == s) return uint32_t(table_[i]) - 1;
    states_.push_back(s);
    parent_.push_back(at_);
    why_.push_back(why);
    table_[i] = half | states_.size();
    return uint32_t(states_.size()) - 1;
  }
  void grow() {
    const std::vector<uint64_t> old(table_.begin(), table_.end());
    table_.assign(old.size() * 2, 0);
    const uint64_t mask = table_.size() - 1;
    for (uint64_t entry : old) {
      if (!entry) continue;
      uint64_t i = entry >> 32 & mask;
      while (table_[i]) i = (i + 1) & mask;
      table_[i] = entry;
    }
  }
  void emit(const State& s, uint8_t cls, const char* why, int served = 0) {
    if (s == states_[at_]) return;  // nothing happened
    const uint64_t hashed = hash(s);
    __builtin_prefetch(&table_[uint32_t(hashed) & (table_.size() - 1)]);
    next_.push_back({s, hashed, why, cls, uint8_t(served)});
  }
  // What was emitted, together: memory is slow, and is asked for all of them before the first is needed.
  void take_next() {
    for (const Next& n : next_) {
      const uint64_t entry = table_[uint32_t(n.hashed) & (table_.size() - 1)];
      if (!entry || (entry ^ n.hashed << 32) >> 32 != 0) continue;
      const auto* known = reinterpret_cast<const char*>(&states_[uint32_t(entry) - 1]);
      for (size_t at = 0; at < sizeof(State); at += 64) __builtin_prefetch(known + at);
    }
    for (const Next& n : next_) edges_.push_back({intern(n.state, n.hashed, n.why), n.fair, n.served});
    next_.clear();
  }
  void flag(uint32_t at, const char* what) {
    std::string name(what, 2);
    for (auto& f : found_)
      if (f.first == name) return;
    found_.push_back({name, at});
  }

  // --- moves.cpp: events for step(), and the environment -----------------------------------------------------------
  Features features_of(int n) const;
  LineState unpack(const NodeM& x) const;
  void pack(const LineState& s, NodeM* x) const;
  LatchWord taken_over(const NodeM& x) const;
  static bool gone(const State& s, int n);
  static bool known_dead(const State& s, int n);
  static void round_over(State& s, int n);
  bool may_come_again(const State& s, int from, int to) const;
  // A mutation that loses count is judged by what comes of it.
  bool counts_messages() const {
    return !(v.abandon || v.caseless || v.old_request_acted || v.old_reply_acted || v.former_request_taken ||
             v.former_reply_acted);
  }
  void event(State& s, int n, const Event& e);
  void refuse_all(State& s, int n);
  void answer(State& s, int n, int to, ReplyKind kind, int passed_to = 0);
  void finish(State& s, int n, const Actions& a);
  static void newest(State& s, int n);
  void write_page(State& s, int n);
  void take(State& s, int from, int n, uint8_t message);
  void request(State s, int from, int n);
  void reply(State s, int from, int n);
  void again(const State& s0, int from, int n);
  void user(const State& s0, int n);
  void background(const State& s0, int n);
  void expand();

  // --- batches.cpp
  void post(State& s, int n, const Actions& a);
  static std::vector<int> granted_by(const State& s, int n);
  bool bound(const NodeM& x) const;
  void execute(State s, int n);
  void complete(State s, int n);

  // --- leaving.cpp
  void leave(const State& s0, int n);
  void count_gone(const State& s0, int n);
  void late_request(const State& s0, int from, int n);

  // --- deaths.cpp
  static NodeSet repairable(const State& s);
  void quiesce(State& s, int n);
  void repair(State& s, int n, LatchWord taken);
  void death(const State& s0, int n);

  // --- what must hold ----------------------------------------------------------------------------------------------
  void invariants();
  void liveness();
  uint32_t fair_cycle(int only);
  int depth(uint32_t at) const {
    int d = 0;
    for (; at; at = parent_[at]) d++;
    return d;
  }

  struct Next {
    State state;
    uint64_t hashed;
    const char* why;
    uint8_t fair, served;
  };

  const Variant& v;
  size_t enough_, most_;
  uint32_t at_ = 0;
  Memory& memory_;
  Store<State>& states_ = memory_.states;
  Store<uint64_t>& table_ = memory_.table;
  Store<uint32_t>&parent_ = memory_.parent, &first_edge_ = memory_.first_edge;
  Store<const char*>& why_ = memory_.why;
  Store<Edge>& edges_ = memory_.edges;
  std::vector<Next> next_;
  std::vector<std::pair<std::string, uint32_t>> found_;
  std::string starved_;
};

}  // namespace coherence::model
