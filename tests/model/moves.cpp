// What can happen in a state: step()'s events with what the driver does about them, users, batches, messages.
#include <algorithm>
#include <cstring>

#include "explorer.hpp"

namespace coherence::model {

// --- step() --------------------------------------------------------------------------------------------------------
Features Explorer::features_of(int n) const {
  if (!v.mixed || n == 0) return v.on;
  return n == 1 ? Features::none() : Features::none().with(Feature::kHandOver).with(Feature::kAgeing);
}

LineState Explorer::unpack(const NodeM& x) const {
  LineState s;
  s.msi = x.msi;
  s.op = x.op;
  s.failures = x.failures;
  s.granted = x.granted;
  s.holds_shared = x.held == kHoldS && !v.hold_ignored;
  s.holds_exclusive = x.held == kHoldX && !v.hold_ignored;
  s.copy_will_do = x.copy_will_do;
  for (int j = 0; j < kNodes; j++) {
    if (x.waiting >> j & 1) s.waiting = s.waiting.with(id_of(j));
    if (x.sharers >> j & 1) s.sharers = s.sharers.with(id_of(j));
  }
  if (x.serving_kind) s.serving = {kPosition[x.serving], RequestKind(x.serving_kind)};
  s.parked_count = x.parked_count;
  for (int i = 0; i < x.parked_count; i++)
    s.parked[i] = {kPosition[x.parked_from[i]], RequestKind(x.parked_kind[i]), x.parked_priority[i]};
  s.priority = x.priority;
  s.bar = x.bar;
  s.hints = x.hints;
  s.joins = x.joins;
  if (x.passed_to) s.passed_to = id_of(x.passed_to - 1);
  if (x.taken_from) s.taken_from = id_of(x.taken_from - 1);
  return s;
}

// The word that its take-over expects.
LatchWord Explorer::taken_over(const NodeM& x) const {
  const LineState s = unpack(x);
  return s.taken_from.valid() ? LatchWord::claimed_by(s.taken_from, s.sharers) : LatchWord::shared_by(s.sharers);
}

static uint8_t bits_of(NodeSet nodes) {
  uint8_t bits = 0;
  for (; !nodes.empty(); nodes = nodes.without(nodes.first()))
    if (is_node(nodes.first())) bits |= uint8_t(1 << index_of(nodes.first()));
  return bits;
}

// node + 1; 0: none of ours
static uint8_t number_of(NodeId node) { return uint8_t(is_node(node) ? index_of(node) + 1 : 0); }

void Explorer::pack(const LineState& s, NodeM* x) const {
  x->msi = s.msi;
  x->op = s.op;
  x->failures = s.failures;
  x->granted = s.granted;
  x->copy_will_do = s.copy_will_do;
  x->waiting = bits_of(s.waiting);
  x->passed_to = number_of(s.passed_to);
  x->hints = s.hints;
  x->joins = s.joins;
  const bool counts = s.op == LineOp::kClaimPosted || s.op == LineOp::kWaitClaimed || s.op == LineOp::kUnclaimPosted ||
                      s.op == LineOp::kDowngradePosted || s.op == LineOp::kTakeReadPosted ||
                      s.op == LineOp::kTakeWritePosted || s.op == LineOp::kRepairedPosted;
  x->sharers = counts ? bits_of(s.sharers) : 0;
  x->taken_from = number_of(s.taken_from);
  bool serving = s.serving.kind != RequestKind::kNone;
  x->serving = serving ? uint8_t(index_of(NodeId{s.serving.from})) : 0;
  x->serving_kind = uint8_t(s.serving.kind);
  x->parked_count = s.parked_count;
  for (int i = 0; i < 2; i++) {
    bool there = i < s.parked_count;
    x->parked_from[i] = there ? uint8_t(index_of(NodeId{s.parked[i].from})) : 0;
    x->parked_kind[i] = there ? uint8_t(s.parked[i].kind) : 0;
    x->parked_priority[i] = there ? s.parked[i].priority : 0;
  }
  x->priority = v.priorities ? std::min(s.priority, kPriorityMax) : 0;
  x->bar = v.priorities ? std::min(s.bar, kPriorityMax) : 0;
  if (!s.parked_count) x->turn = 0;
}

bool Explorer::gone(const State& s, int n) { return s.fenced >> n & 1; }
bool Explorer::known_dead(const State& s, int n) { return s.fenced >> (4 + n) & 1; }

void Explorer::round_over(State& s, int n) {
  for (int j = 0; j < kNodes; j++)
    if (s.reply_again[j][n]) s.reply_again[j][n] |= kOld;
}

// One event at node n, and what the driver does about it.
void Explorer::event(State& s, int n, const Event& e) {
  NodeM& x = s.node[n];
  LineState l = unpack(x);
  if (v.upgrade_forever && e.kind == Event::Kind::kBatchDone) l.failures = 0;
  if (v.join_twice && e.kind == Event::Kind::kGone) l.joins = false;
  if (v.bits_kept && l.op == LineOp::kTakeWritePosted) l.sharers = NodeSet();
  Actions a = step(l, id_of(n), e, features_of(n));
  if (a.bad) flag(at_, "X0");
  if (l.parked_count > 2) flag(at_, "X0");
  pack(l, &x);
  if (a.send != RequestKind::kNone || a.finished) round_over(s, n);
  if (v.upgrade_forever && x.parked_count && x.op == LineOp::kWaitUpgrade) refuse_all(s, n);
  for (int i = 0; i < a.reply_count; i++)
    answer(s, n, index_of(NodeId{a.replies[i].to.from}), a.replies[i].kind, number_of(a.replies[i].passed_to));
  if (a.post != Post::kNone) post(s, n, a);
  for (NodeSet to = a.send_to; !to.empty(); to = to.without(to.first())) {
    if (!is_node(to.first())) continue;  // the word of an unsafe variant names no node (X5): the message is lost
    uint8_t& slot = s.request[n][index_of(to.first())];
    if (slot && !(slot & kFormerRequest) && counts_messages()) flag(at_, "X0");
    RequestKind kind = v.caseless && a.send == RequestKind::kPeerInv ? RequestKind::kPeerWr : a.send;
    if (!gone(s, index_of(to.first()))) slot = message(kind, x.priority);
  }
  if (a.finished)
    finish(s, n, a);
  else if (a.latch == LatchEnd::kRelease)
    x.latch = kFree;
  if (x.msi == MsiState::kInvalid && x.op == LineOp::kIdle) {
    x.fresh = 0;
    x.held = kNoHold;
  }
}

void Explorer::refuse_all(State& s, int n) {
  NodeM& x = s.node[n];
  for (int i = 0; i < x.parked_count; i++) answer(s, n, x.parked_from[i], ReplyKind::kDropped);
  x.parked_count = 0;
  memset(x.parked_from, 0, 2), memset(x.parked_kind, 0, 2), memset(x.parked_priority, 0, 2);
}

void Explorer::answer(State& s, int n, int to, ReplyKind kind, int passed_to) {
  if (gone(s, to)) return;
  bool grant = carries_page(kind);
  const NodeM& x = s.node[n];
  if (kind == ReplyKind::kCopy && (!x.fresh || x.msi != MsiState::kModified || x.latch == kGuardX)) flag(at_, "X9");
  MessageM& r = s.reply[n][to];
  if (r.kind && counts_messages()) flag(at_, "X0");
  if (v.lies && kind == ReplyKind::kDropped) passed_to = (n + 1) % kNodes + 1;
  r = {reply_message(kind, passed_to), uint8_t(grant && s.node[n].fresh)};
}

// --- what can happen -------------------------------------------------------------------------------------------------
void Explorer::newest(State& s, int n) {
  s.pool = 0;
  for (int k = 0; k < kNodes; k++) {
    s.node[k].fresh = s.node[k].changed = k == n;
    s.node[k].redo = 0;
    s.node[k].batch.write_new = s.node[k].batch.read_new = 0;
    for (int j = 0; j < kNodes; j++) s.reply[k][j].fresh = 0;
  }
  s.node[n].unflushed = 1;
}

void Explorer::write_page(State& s, int n) {
  if (!s.node[n].fresh) flag(at_, "X2");
  newest(s, n);
  if (!v.log) s.node[n].unflushed = 0;
}

void Explorer::take(State& s, int from, int n, uint8_t message) {
  NodeM& x = s.node[n];
  if (v.claim_refused && kind_of(message) == RequestKind::kPeerClaim && x.op != LineOp::kIdle)
    return answer(s, n, from, ReplyKind::kDropped);
  const bool latched = x.op == LineOp::kIdle && x.msi != MsiState::kInvalid && x.latch == kFree;
  if (latched) x.latch = kOperation;
  event(s, n,
        {.kind = Event::Kind::kPeer,
         .latched = latched,
         .may_leave = !x.unflushed && !bound(x),
         .request = {kPosition[from], kind_of(message), priority_of(message)}});
}

void Explorer::request(State s, int from, int n) {
  const uint8_t arrived = s.request[from][n];
  if (arrived & kFormerRequest) return late_request(s, from, n);
  auto kind = kind_of(arrived);
  if (s.reply[n][from].kind) return;  // only where a mutation lost count
  s.request[from][n] = 0;
  take(s, from, n, arrived);
  if (may_come_again(s, from, n)) {
    State twice = s;
    twice.request_again[from][n] = arrived;
    emit(twice, fair(n, kRequest + from), "a request arrives, and will again");
  }
  emit(s, fair(n, kRequest + from),
       kind == RequestKind::kPeerRd      ? "PeerRd arrives"
       : kind == RequestKind::kPeerWr    ? "PeerWr arrives"
       : kind == RequestKind::kPeerClaim ? "PeerClaim arrives"
                                         : "PeerInv arrives");
}

static Event reply_event(int from, uint8_t message) {
  const int to = passed_to_of(message);
  return {.kind = Event::Kind::kReply,
          .reply = reply_of(message),
          .from = id_of(from),
          .passed_to = to ? id_of(to - 1) : NodeId()};
}

void Explorer::reply(State s, int from, int n) {
  NodeM& x = s.node[n];
  MessageM r = s.reply[from][n];
  if (v.copy_kept && reply_of(r.kind) == ReplyKind::kCopy) r.kind = uint8_t(ReplyKind::kGrantS);
  s.reply[from][n] = MessageM{};
  bool grant = carries_page(reply_of(r.kind));
  bool refusal = reply_of(r.kind) == ReplyKind::kDropped || reply_of(r.kind) == ReplyKind::kDone;
  bool expected = x.waiting >> from & 1;
  if (expected && grant) x.fresh = r.fresh;
  if (expected && grant && v.caseless) x.waiting = uint8_t(1 << from);
  if (expected || !v.former_request_taken) event(s, n, reply_event(from, r.kind));  // else it is outdated
  if (refusal && may_come_again(s, from, n)) {
    State twice = s;
    twice.reply_again[from][n] = r.kind | (x.waiting ? 0 : kOld);
    emit(twice, fair(n, kReply + from), "Done or Dropped arrives, and will again");
  }
  emit(s, fair(n, kReply + from), refusal ? "Done or Dropped arrives" : "a grant arrives");
}

bool Explorer::may_come_again(const State& s, int from, int to) const {
  return from == v.outdated[0] - 1 && to == v.outdated[1] - 1 && !s.request_again[from][to] && !s.reply_again[from][to];
}

// A request is taken when it arrives first; a reply is recognised by its round (coherence.request-taken-once).
void Explorer::again(const State& s0, int from, int n) {
  if (const uint8_t message = s0.request_again[from][n]) {
    State s = s0;
    s.request_again[from][n] = 0;
    if (v.old_request_acted) take(s, from, n, message);
    emit(s, kEnvironment, "a request arrives again");
  }
  if (const uint8_t message = s0.reply_again[from][n]) {
    State s = s0;
    s.reply_again[from][n] = 0;
    // Rounds are counted anew by each incarnation, so it is not the round that tells a former one's.
    const bool acted = message & kFormerReply ? v.former_reply_acted && (s.node[n].waiting >> from & 1)
                                              : !(message & kOld) || v.old_reply_acted;
    if (acted) event(s, n, reply_event(from, message));
    emit(s, kEnvironment, "Done or Dropped arrives again");
  }
}

void Explorer::user(const State& s0, int n) {
  const NodeM& x = s0.node[n];
  if (x.latch == kGuardS || x.latch == kGuardX || x.latch == kGuardCopy) {
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
  if (x.told && s0.node[0].held % kHeldBefore) return;  // waits for the transaction
  if (x.want != kNothing) {  // told of a hold; or with `steal`: the grant is there, if it still is
    State s = s0;
    NodeM& y = s.node[n];
    bool enough = y.want == kToWrite ? y.msi == MsiState::kModified : y.msi != MsiState::kInvalid;
    y.told = 0;
    if (enough) {
      if (y.want == kToWrite) write_page(s, n);
      y.want = kNothing;
      emit(s, fair(n, kUse), "uses the page", n + 1);
    } else if (!bound(y)) {
      y.latch = kOperation;
      event(s, n, {.kind = y.want == kToWrite ? Event::Kind::kFetchExclusive : Event::Kind::kFetchShared});
      emit(s, fair(n, kUse), "fetches again");
    }
    return;
  }
  if (v.evicts && !x.parked_count && x.msi != MsiState::kInvalid && !(x.held % kHeldBefore) &&
      !(x.msi == MsiState::kModified && x.unflushed) && !bound(x)) {
    State s = s0;
    s.node[n].latch = kOperation;
    event(s, n, {.kind = Event::Kind::kEvict});
    emit(s, kEnvironment, "evicts");
  }
  if (x.parked_count && x.turn) return;  // gamma: the peer's turn
  NodeId first;
  auto begin = [&](Want want, Event::Kind kind, const char* why) {
    State s = s0;
    s.node[n].want = want;
    s.node[n].latch = kOperation;
    s.node[n].turn = x.parked_count > 0;
    event(s, n, {.kind = kind, .passed_to = first});
    emit(s, kEnvironment, why);
  };
  if (x.msi == MsiState::kInvalid) begin(kToRead, Event::Kind::kFetchShared, "wants to read");
  if (x.msi == MsiState::kInvalid && (x.passed_to || v.lies) && features_of(n).has(Feature::kJoin)) {
    first = id_of(v.lies ? (n + 1) % kNodes : x.passed_to - 1);
    begin(kToRead, Event::Kind::kFetchShared, "wants to read, and joins");
    first = NodeId();
  }
  if (x.msi == MsiState::kInvalid && v.copies && n == 2) begin(kToLook, Event::Kind::kFetchCopy, "wants to look");
  if (x.msi != MsiState::kModified && !bound(x)) begin(kToWrite, Event::Kind::kFetchExclusive, "wants to write");
  auto hit = [&](Latch latch, const char* why) {
    State s = s0;
    s.node[n].turn = x.parked_count > 0;
    if (v.guards)
      s.node[n].latch = latch;
    else if (latch == kGuardX)
      write_page(s, n);
    emit(s, kEnvironment, why);
  };
  if (x.msi != MsiState::kInvalid && v.guards) hit(kGuardS, "hits, shared");
  if (x.msi == MsiState::kModified) hit(kGuardX, "hits, exclusively");
  if (v.hold && n == 0 && x.held == kNoHold) {
    State s = s0;
    s.node[n].turn = x.parked_count > 0;
    s.node[n].held = kHoldS;
    if (x.msi != MsiState::kInvalid) emit(s, kEnvironment, "holds for its transaction, shared");
    s.node[n].held = kHoldX;
    if (x.msi == MsiState::kModified) emit(s, kEnvironment, "holds for its transaction, exclusively");
  }
}

void Explorer::background(const State& s0, int n) {
  const NodeM& x = s0.node[n];
  if (x.parked_count && x.latch == kFree && x.op == LineOp::kIdle) {
    State s = s0;
    s.node[n].latch = kOperation;
    event(s, n, {.kind = Event::Kind::kServe, .latched = true, .may_leave = !x.unflushed && !bound(x)});
    if (s.node[n].op == LineOp::kIdle) s.node[n].latch = kFree;
    emit(s, fair(n, kServe), "serves a parked request");
  }
  if (x.unflushed) {
    State s = s0;
    s.node[n].unflushed = 0;
    emit(s, fair(n, kFlush), "flushes its log");
  }
  if (x.held % kHeldBefore) {
    State s = s0;
    s.node[n].held = kHeldBefore;
    emit(s, fair(n, kDrop), "ends its transaction");
  }
  if (x.undo == 1) {
    State s = s0;
    s.node[n].undo = 0;
    s.word += LatchWord::drop_reader(id_of(n));
    emit(s, fair(n, kUndo), "takes its bit back");
  }
  leave(s0, n);
  count_gone(s0, n);
  for (int d = 0; d < kNodes; d++) {
    if (!gone(s0, d)) continue;
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

void Explorer::expand() {
  const State s = states_[at_];
  for (int n = 0; n < kNodes; n++) {
    const NodeM& x = s.node[n];
    if (s.dead >> n & 1) {
      if (x.batch.post != Post::kNone && !x.batch.done) execute(s, n);
      death(s, n);
      continue;
    }
    death(s, n);
    if (x.batch.post != Post::kNone) x.batch.done ? complete(s, n) : execute(s, n);
    user(s, n);
    background(s, n);
    for (int f = 0; f < kNodes; f++) {
      if (s.request[f][n]) request(s, f, n);
      if (s.reply[f][n].kind) reply(s, f, n);
      again(s, f, n);
    }
  }
}

}  // namespace coherence::model
