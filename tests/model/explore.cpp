#include <algorithm>
#include <cstdio>
#include <deque>

#include "model.hpp"

namespace coherence::model {
namespace {

// Fairness classes.
enum Fair : uint8_t { kEnvironment = 0, kFence = 1, kRepair = 2, kPerNode = 3, kPerNodeCount = 14 };
enum Kind { kComplete, kExecute, kUndo, kUse, kServe, kFlush, kGone, kDrop, kRequest, kReply = kRequest + kNodes };
uint8_t fair(int n, int kind) { return uint8_t(kPerNode + n * kPerNodeCount + kind); }

class Explorer {
 public:
  Explorer(const Variant& variant, size_t enough, size_t most) : v(variant), enough_(enough), most_(most) {
    table_.assign(1 << 16, 0);
  }
  Verdict run();

 private:
  // --- states --------------------------------------------------------------------------------------------------------
  static uint64_t hash(const State& s) {
    uint64_t h = 1469598103934665603u, x[sizeof(State) / 8];
    memcpy(x, &s, sizeof s);
    for (uint64_t w : x) h = (h ^ w) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return h;
  }
  uint32_t intern(const State& s, const char* why) {
    if (states_.size() * 2 > table_.size()) grow();
    uint64_t mask = table_.size() - 1, i = hash(s) & mask;
    for (; table_[i]; i = (i + 1) & mask)
      if (states_[table_[i] - 1] == s) return table_[i] - 1;
    states_.push_back(s);
    parent_.push_back(at_);
    why_.push_back(why);
    table_[i] = uint32_t(states_.size());
    return table_[i] - 1;
  }
  void grow() {
    std::vector<uint32_t> old(table_.size() * 2, 0);
    old.swap(table_);
    uint64_t mask = table_.size() - 1;
    for (uint32_t entry : old) {
      if (!entry) continue;
      uint64_t i = hash(states_[entry - 1]) & mask;
      while (table_[i]) i = (i + 1) & mask;
      table_[i] = entry;
    }
  }
  void emit(const State& s, uint8_t cls, const char* why, int served = 0) {
    if (s == states_[at_]) return;  // nothing happened
    edges_.push_back({intern(s, why), cls, uint8_t(served)});
  }
  void flag(uint32_t at, const char* what) {
    std::string name(what, 2);
    for (auto& f : found_)
      if (f.first == name) return;
    found_.push_back({name, at});
  }

  // --- step() --------------------------------------------------------------------------------------------------------
  LineState unpack(const NodeM& x) const {
    LineState s;
    s.memo = x.memo;
    s.op = x.op;
    s.failures = x.failures;
    s.granted = x.granted;
    s.holds_shared = x.held;
    for (int j = 0; j < kNodes; j++)
      if (x.waiting >> j & 1) s.waiting = s.waiting.with(id_of(j));
    if (x.serving_kind) s.serving = {kPosition[x.serving], RequestKind(x.serving_kind)};
    s.parked_count = x.parked_count;
    for (int i = 0; i < x.parked_count; i++) s.parked[i] = {kPosition[x.parked_from[i]], RequestKind(x.parked_kind[i])};
    return s;
  }
  void pack(const LineState& s, NodeM* x) const {
    x->memo = s.memo;
    x->op = s.op;
    x->failures = s.failures;
    x->granted = s.granted;
    x->waiting = 0;
    for (NodeSet w = s.waiting; !w.empty(); w = w.without(w.first())) x->waiting |= uint8_t(1 << index_of(w.first()));
    bool serving = s.serving.kind != RequestKind::kNone;
    x->serving = serving ? uint8_t(index_of(NodeId{s.serving.from})) : 0;
    x->serving_kind = uint8_t(s.serving.kind);
    x->parked_count = s.parked_count;
    for (int i = 0; i < 2; i++) {
      bool there = i < s.parked_count;
      x->parked_from[i] = there ? uint8_t(index_of(NodeId{s.parked[i].from})) : 0;
      x->parked_kind[i] = there ? uint8_t(s.parked[i].kind) : 0;
    }
    if (!s.parked_count) x->turn = 0;
  }

  static bool gone(const State& s, int n) { return s.fenced && s.dead == n + 1; }

  // One event at node n, and what the driver does about it.
  void event(State& s, int n, const Event& e) {
    NodeM& x = s.node[n];
    LineState l = unpack(x);
    if (v.no_tie_break && e.kind == Event::Kind::kBatchDone) l.failures = 0;
    Actions a = step(l, id_of(n), e);
    if (a.bad) flag(at_, "X0");
    if (l.parked_count > 2) flag(at_, "X0");
    pack(l, &x);
    if (v.no_tie_break && x.parked_count && x.op == LineOp::kWaitUpgrade) refuse_all(s, n);
    for (int i = 0; i < a.reply_count; i++) answer(s, n, index_of(NodeId{a.replies[i].to.from}), a.replies[i].kind);
    if (a.post != Post::kNone) post(s, n, a);
    for (NodeSet to = a.send_to; !to.empty(); to = to.without(to.first())) {
      uint8_t& slot = s.request[n][index_of(to.first())];
      if (slot && !v.abandon && !v.caseless) flag(at_, "X0");
      RequestKind kind = v.caseless && a.send == RequestKind::kPeerInv ? RequestKind::kPeerWr : a.send;
      if (!gone(s, index_of(to.first()))) slot = uint8_t(kind);
    }
    if (a.finished) finish(s, n, a);
    else if (a.latch == LatchEnd::kRelease) x.latch = kFree;
    if (x.memo == Memo::kInvalid && x.op == LineOp::kIdle) x.fresh = 0;
  }
  void refuse_all(State& s, int n) {
    NodeM& x = s.node[n];
    for (int i = 0; i < x.parked_count; i++) answer(s, n, x.parked_from[i], ReplyKind::kDropped);
    x.parked_count = 0;
    memset(x.parked_from, 0, 2), memset(x.parked_kind, 0, 2);
  }
  void answer(State& s, int n, int to, ReplyKind kind) {
    if (gone(s, to)) return;
    bool grant = kind == ReplyKind::kGrantS || kind == ReplyKind::kGrantM;
    if (grant && v.forward_first && s.node[n].undo == 0x80) return;  // was sent when the batch was posted
    MessageM& r = s.reply[n][to];
    if (r.kind && !v.abandon && !v.caseless) flag(at_, "X0");
    r = {uint8_t(kind), uint8_t(grant && s.node[n].fresh)};
  }
  void post(State& s, int n, const Actions& a) {
    NodeM& x = s.node[n];
    bool writes = a.post == Post::kRelease || a.post == Post::kHandOver || a.post == Post::kDowngrade;
    Post what = v.transient_bits && a.post == Post::kProbe ? Post::kAddReader : a.post;
    x.batch = {what, 0, 0, uint8_t(writes && x.fresh), 0, uint8_t(writes && x.serving_kind ? x.serving : 0)};
    x.old = 0;
    if (v.forward_first && (a.post == Post::kHandOver || a.post == Post::kDowngrade) && !s.reply[n][x.serving].kind) {
      answer(s, n, x.serving, a.post == Post::kHandOver ? ReplyKind::kGrantM : ReplyKind::kGrantS);
      x.undo = 0x80;
    }
  }
  void finish(State& s, int n, const Actions& a) {
    NodeM& x = s.node[n];
    if (x.memo == Memo::kInvalid) x.latch = kFree;  // evicted
    else if (v.steal) x.latch = kFree;
    else x.latch = a.latch == LatchEnd::kToShared ? kGuardS : kGuardX;
  }

  // --- what can happen -------------------------------------------------------------------------------------------------
  static void newest(State& s, int n) {
    s.pool = 0;
    for (int k = 0; k < kNodes; k++) {
      s.node[k].fresh = k == n;
      s.node[k].batch.write_new = s.node[k].batch.read_new = 0;
      for (int j = 0; j < kNodes; j++) s.reply[k][j].fresh = 0;
    }
    s.node[n].unflushed = 1;
  }
  void write_page(State& s, int n) {
    if (!s.node[n].fresh) flag(at_, "X2");
    newest(s, n);
    if (!v.log) s.node[n].unflushed = 0;
  }

  void execute(State s, int n) {  // one verb of the posted batch
    NodeM& x = s.node[n];
    BatchM& b = x.batch;
    NodeId me = id_of(n);
    bool last = true;
    auto no_holder = [](uint64_t w) { return !LatchWord{w}.has_holder(); };
    bool write_turn = (b.next == 0) != (v.free_before_write && b.post == Post::kRelease);
    switch (b.post) {
      case Post::kAddReader:
        if (b.next == 0) x.old = s.word, s.word += LatchWord::add_reader(me), last = !no_holder(x.old);
        else b.read_new = s.pool;
        break;
      case Post::kProbe:
        if (b.next == 0) x.old = s.word, last = !no_holder(x.old);
        else b.read_new = s.pool;
        break;
      case Post::kTake:
        if (b.next == 0) {
          x.old = s.word;
          last = s.word != 0;
          if (s.word == 0) s.word = LatchWord::owned_by(me).raw;
        } else {
          b.read_new = s.pool;
        }
        break;
      case Post::kReadPage: b.read_new = s.pool; break;
      case Post::kUpgrade:
        x.old = s.word;
        if (s.word == LatchWord::sole_reader(me).raw) s.word = LatchWord::owned_by(me).raw;
        break;
      case Post::kDropShare: x.old = s.word, s.word += LatchWord::drop_reader(me); break;
      case Post::kRelease:
      case Post::kHandOver:
      case Post::kDowngrade:
        last = b.next == 1;
        if (write_turn) {
          if (!(v.no_write_back && b.post == Post::kHandOver)) s.pool = b.write_new;
          b.write_new = 0;
        } else {
          x.old = s.word;
          s.word += b.post == Post::kRelease    ? LatchWord::drop_holder(me)
                    : b.post == Post::kHandOver ? LatchWord::hand_over(me, id_of(b.to))
                                                : LatchWord::downgrade(me);
          if (v.transient_bits && b.post == Post::kDowngrade) s.word += LatchWord::add_reader(id_of(b.to));
        }
        break;
      case Post::kNone: return;
    }
    b.next++;
    b.done = last;
    emit(s, fair(n, kExecute), "a verb of the batch runs");
  }

  void complete(State s, int n) {
    NodeM& x = s.node[n];
    BatchM b = x.batch;
    uint64_t old = x.old;
    x.batch = BatchM{};
    x.old = 0;
    bool read = b.post == Post::kReadPage ||
                (b.next == 2 && (b.post == Post::kAddReader || b.post == Post::kProbe || b.post == Post::kTake));
    if (read) x.fresh = b.read_new;
    if (v.transient_bits && b.post == Post::kAddReader && LatchWord{old}.has_holder()) x.undo = 1;
    event(s, n, {.kind = Event::Kind::kBatchDone, .old = old});
    if (x.undo == 0x80 && x.batch.post == Post::kNone) x.undo = 0;
    emit(s, fair(n, kComplete), "the batch completes");
  }

  void request(State s, int from, int n) {
    NodeM& x = s.node[n];
    auto kind = RequestKind(s.request[from][n]);
    if (s.reply[n][from].kind) return;  // only where a mutation lost count
    s.request[from][n] = 0;
    bool latched = x.op == LineOp::kIdle && x.memo != Memo::kInvalid && x.latch == kFree;
    if (latched) x.latch = kOperation;
    event(s, n, {.kind = Event::Kind::kPeer, .latched = latched, .may_leave = !x.unflushed,
                 .request = {kPosition[from], kind}});
    emit(s, fair(n, kRequest + from),
         kind == RequestKind::kPeerRd ? "PeerRd arrives" : kind == RequestKind::kPeerWr ? "PeerWr arrives" : "PeerInv arrives");
  }

  void reply(State s, int from, int n) {
    NodeM& x = s.node[n];
    MessageM r = s.reply[from][n];
    s.reply[from][n] = MessageM{};
    bool grant = r.kind == uint8_t(ReplyKind::kGrantS) || r.kind == uint8_t(ReplyKind::kGrantM);
    bool expected = x.waiting >> from & 1;
    if (expected && grant) x.fresh = r.fresh;
    if (expected && grant && v.caseless) x.waiting = uint8_t(1 << from);
    event(s, n, {.kind = Event::Kind::kReply, .reply = ReplyKind(r.kind), .from = id_of(from)});
    emit(s, fair(n, kReply + from), grant ? "a grant arrives" : "Done or Dropped arrives");
  }

  void user(const State& s0, int n) {
    const NodeM& x = s0.node[n];
    if (x.latch == kGuardS || x.latch == kGuardX) {
      State s = s0;
      NodeM& y = s.node[n];
      int served = y.want ? n + 1 : 0;
      if (y.latch == kGuardX) write_page(s, n);
      y.latch = kFree;
      y.want = kNothing;
      emit(s, fair(n, kUse), "uses the page and unlocks", served);
      return;
    }
    if (x.latch != kFree || x.op != LineOp::kIdle) return;
    if (x.want != kNothing) {  // only with `steal`: the grant is there, if it still is
      State s = s0;
      NodeM& y = s.node[n];
      bool enough = y.want == kToRead ? y.memo != Memo::kInvalid : y.memo == Memo::kModified;
      if (enough) {
        if (y.want == kToWrite) write_page(s, n);
        y.want = kNothing;
        emit(s, fair(n, kUse), "uses the page", n + 1);
      } else {
        y.latch = kOperation;
        event(s, n, {.kind = y.want == kToRead ? Event::Kind::kFetchShared : Event::Kind::kFetchExclusive});
        emit(s, fair(n, kUse), "fetches again");
      }
      return;
    }
    if (!x.parked_count && x.memo != Memo::kInvalid && !x.held && !(x.memo == Memo::kModified && x.unflushed)) {
      State s = s0;
      s.node[n].latch = kOperation;
      event(s, n, {.kind = Event::Kind::kEvict});
      emit(s, kEnvironment, "evicts");
    }
    if (x.parked_count && x.turn) return;  // gamma: the peer's turn
    auto begin = [&](Want want, Event::Kind kind, const char* why) {
      State s = s0;
      s.node[n].want = want;
      s.node[n].latch = kOperation;
      s.node[n].turn = x.parked_count > 0;
      event(s, n, {.kind = kind});
      emit(s, kEnvironment, why);
    };
    if (x.memo == Memo::kInvalid) begin(kToRead, Event::Kind::kFetchShared, "wants to read");
    if (x.memo != Memo::kModified) begin(kToWrite, Event::Kind::kFetchExclusive, "wants to write");
    auto hit = [&](Latch latch, const char* why) {
      State s = s0;
      s.node[n].turn = x.parked_count > 0;
      if (v.guards) s.node[n].latch = latch;
      else if (latch == kGuardX) write_page(s, n);
      emit(s, kEnvironment, why);
    };
    if (x.memo != Memo::kInvalid && v.guards) hit(kGuardS, "hits, shared");
    if (x.memo == Memo::kModified) hit(kGuardX, "hits, exclusively");
    if (v.hold && n == 0 && x.memo != Memo::kInvalid && !x.held && !x.parked_count) {
      State s = s0;
      s.node[n].held = 1;
      emit(s, kEnvironment, "holds for its transaction");
    }
  }

  void background(const State& s0, int n) {
    const NodeM& x = s0.node[n];
    if (x.parked_count && x.latch == kFree && x.op == LineOp::kIdle) {
      State s = s0;
      s.node[n].latch = kOperation;
      event(s, n, {.kind = Event::Kind::kServe, .latched = true, .may_leave = !x.unflushed});
      if (s.node[n].op == LineOp::kIdle) s.node[n].latch = kFree;
      emit(s, fair(n, kServe), "serves a parked request");
    }
    if (x.unflushed) {
      State s = s0;
      s.node[n].unflushed = 0;
      emit(s, fair(n, kFlush), "flushes its log");
    }
    if (x.held) {
      State s = s0;
      s.node[n].held = 0;
      emit(s, fair(n, kDrop), "ends its transaction");
    }
    if (x.undo == 1) {
      State s = s0;
      s.node[n].undo = 0;
      s.word += LatchWord::drop_reader(id_of(n));
      emit(s, fair(n, kUndo), "takes its bit back");
    }
    if (s0.fenced) {
      int d = s0.dead - 1;
      bool concerned = x.waiting >> d & 1;
      for (int i = 0; i < x.parked_count; i++) concerned |= x.parked_from[i] == d;
      if (concerned) {
        State s = s0;
        event(s, n, {.kind = Event::Kind::kGone, .from = id_of(d)});
        emit(s, fair(n, kGone), "counts the dead node's reply as Dropped");
      }
    }
    if (v.abandon && x.op == LineOp::kWaitExclusive) {
      State s = s0;
      NodeM& y = s.node[n];
      y.op = LineOp::kIdle;
      y.waiting = y.want = 0;
      y.granted = ReplyKind::kNone;
      y.latch = kFree;
      y.fresh = 0;
      emit(s, kEnvironment, "forgets its wait");
    }
  }

  void death(const State& s0, int n) {
    if (!s0.dead) {
      State s = s0;
      NodeM old = s.node[n];
      NodeM& d = s.node[n];
      s.dead = uint8_t(n + 1);
      d = NodeM{};
      d.fresh = old.fresh | old.batch.write_new;  // its redo has them
      if (!old.batch.done) d.batch = old.batch;
      emit(s, kEnvironment, "dies");
      return;
    }
    NodeId id = id_of(n);
    if (!s0.fenced) {
      State s = s0;
      s.fenced = 1;
      if (!v.no_fence) s.node[n].batch = BatchM{};
      for (int j = 0; j < kNodes; j++) {
        s.request[n][j] = s.request[j][n] = 0;
        s.reply[n][j] = s.reply[j][n] = MessageM{};
      }
      emit(s, kFence, "the dead node is fenced");
      return;
    }
    State s = s0;
    if (LatchWord w{s.word}; w.has_holder() && w.holder() == id) {
      s.pool |= s.node[n].fresh;
      s.word += LatchWord::drop_holder(id);
      emit(s, kRepair, "the dead holder is repaired");
    } else if (w.readers().has(id)) {
      s.word += LatchWord::drop_reader(id);
      emit(s, kRepair, "the dead reader is repaired");
    }
  }

  void expand() {
    const State s = states_[at_];
    for (int n = 0; n < kNodes; n++) {
      const NodeM& x = s.node[n];
      if (s.dead == n + 1) {
        if (x.batch.post != Post::kNone && !x.batch.done) execute(s, n);
        death(s, n);
        continue;
      }
      if (v.crash && !s.dead) death(s, n);
      if (x.batch.post != Post::kNone) x.batch.done ? complete(s, n) : execute(s, n);
      user(s, n);
      background(s, n);
      for (int f = 0; f < kNodes; f++) {
        if (s.request[f][n]) request(s, f, n);
        if (s.reply[f][n].kind) reply(s, f, n);
      }
    }
  }

  // --- what must hold ----------------------------------------------------------------------------------------------------
  void invariants();
  void liveness();
  uint32_t fair_cycle(int only) const;
  int depth(uint32_t at) const {
    int d = 0;
    for (; at; at = parent_[at]) d++;
    return d;
  }

  const Variant& v;
  size_t enough_, most_;
  uint32_t at_ = 0;
  std::vector<State> states_;
  std::vector<uint32_t> parent_, table_, first_edge_;
  std::vector<const char*> why_;
  std::vector<Edge> edges_;
  std::vector<std::pair<std::string, uint32_t>> found_;
  std::string starved_;
};

void Explorer::invariants() {
  const State& s = states_[at_];
  LatchWord w{s.word};
  int writers = 0, readers = 0;
  bool any = s.pool, found = s.pool, quiet = true;
  uint64_t sum = 0;
  uint64_t known = 0;
  for (int n = 0; n < kNodes; n++) known |= LatchWord::reader_bit(id_of(n));
  bool odd = (w.readers().bits & ~known) || !w.well_formed() ||
             (w.has_holder() && id_of(index_of(w.holder()) < kNodes ? index_of(w.holder()) : 0) != w.holder());
  for (int n = 0; n < kNodes; n++) {
    const NodeM& x = s.node[n];
    NodeId me = id_of(n);
    bool named = w.has_holder() && w.holder() == me;
    if (s.dead == n + 1) {
      any |= x.fresh;
      found |= x.fresh && named;
      quiet &= s.fenced && !named && !w.readers().has(me) && x.batch.post == Post::kNone;
      continue;
    }
    bool leaving = x.op == LineOp::kReleasePosted || x.op == LineOp::kHandOverPosted ||
                   x.op == LineOp::kDowngradePosted || x.op == LineOp::kInvalidatePosted ||
                   x.op == LineOp::kFallbackPosted;
    bool usable = x.memo != Memo::kInvalid && !leaving;
    writers += usable && x.memo == Memo::kModified;
    readers += usable && x.memo == Memo::kShared;
    if (usable && !x.fresh) flag(at_, "X2");
    any |= x.fresh || x.batch.write_new;
    found |= named && (x.fresh || x.batch.write_new);
    for (int j = 0; j < kNodes; j++) {
      any |= s.reply[n][j].fresh;
      quiet &= !s.reply[n][j].kind && !s.request[n][j];
    }
    quiet &= x.op == LineOp::kIdle && x.batch.post == Post::kNone && !x.undo;
    if (usable && x.memo == Memo::kModified && !named) flag(at_, "X6");
    if (usable && x.memo == Memo::kShared && !named && (w.has_holder() || !w.readers().has(me))) flag(at_, "X6");
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

}  // namespace

Verdict explore(const Variant& variant, size_t enough, size_t states_max) {
  return Explorer(variant, enough, states_max).run();
}

}  // namespace coherence::model
