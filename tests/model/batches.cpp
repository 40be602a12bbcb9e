// Batches: posted, run verb by verb, completed; and whom they serve before that (coherence.early-grant-bound).
#include <cstring>

#include "explorer.hpp"

namespace coherence::model {

void Explorer::post(State& s, int n, const Actions& a) {
  NodeM& x = s.node[n];
  bool writes = a.post == Post::kRelease || a.post == Post::kHandOver || a.post == Post::kDowngrade;
  Post what = v.transient_bits && a.post == Post::kProbe ? Post::kAddReader : a.post;
  x.batch = {what, 0, 0, uint8_t(writes && x.fresh), 0, uint8_t(writes && x.serving_kind ? x.serving : 0)};
  x.old = 0;
  const Features on = features_of(n);
  if (!on.has(Feature::kEarlyAnswers) || !x.serving_kind || gone(s, x.serving)) return;
  const bool grants = a.post == Post::kHandOver || a.post == Post::kDowngrade;
  if (grants ? !on.has(Feature::kForwarding) : x.op != LineOp::kInvalidatePosted) return;
  x.undo = kAnswered;
  if (!grants) return answer(s, n, x.serving, ReplyKind::kDone);
  const auto grant = [&](int to, ReplyKind kind) {
    if (gone(s, to)) return;
    answer(s, n, to, kind);
    s.node[to].grant_in_flight = uint8_t(n + 1);
  };
  grant(x.serving, a.post == Post::kHandOver ? ReplyKind::kGrantM : ReplyKind::kGrantS);
  for (int i = 0; a.post == Post::kDowngrade && i < x.parked_count; i++)
    if (is_reader(RequestKind(x.parked_kind[i]))) grant(x.parked_from[i], ReplyKind::kGrantS);
}

// The nodes that n granted while its batch is on its way.
std::vector<int> Explorer::granted_by(const State& s, int n) {
  std::vector<int> granted;
  for (int k = 0; k < kNodes; k++)
    if (s.node[k].grant_in_flight == n + 1) granted.push_back(k);
  return granted;
}

// Nothing may be posted for the line (coherence.early-grant-bound).
bool Explorer::bound(const NodeM& x) const { return x.grant_in_flight && !v.forward_first; }

void Explorer::finish(State& s, int n, const Actions& a) {
  NodeM& x = s.node[n];
  if (a.outcome == Outcome::kHeld)
    x.told = 1, x.latch = kFree;
  else if (a.outcome == Outcome::kCopied)
    x.latch = kGuardCopy;
  else if (x.msi == MsiState::kInvalid)
    x.latch = kFree;  // evicted
  else if (v.steal)
    x.latch = kFree;
  else
    x.latch = a.latch == LatchEnd::kToShared ? kGuardS : kGuardX;
}

void Explorer::execute(State s, int n) {  // one verb of the posted batch
  NodeM& x = s.node[n];
  BatchM& b = x.batch;
  NodeId me = id_of(n);
  bool last = true;
  auto no_owner = [](uint64_t w) { return !LatchWord{w}.has_owner(); };
  bool write_turn = (b.next == 0) != (v.free_before_write && b.post == Post::kRelease);
  switch (b.post) {
    case Post::kAddReader:
      if (b.next == 0)
        x.old = s.word, s.word += LatchWord::add_reader(me), last = !no_owner(x.old);
      else
        b.read_new = s.pool;
      break;
    case Post::kProbe:
      if (b.next == 0)
        x.old = s.word, last = !no_owner(x.old);
      else
        b.read_new = s.pool;
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
    case Post::kReadPage:
      b.read_new = s.pool;
      break;
    case Post::kUpgrade:
      x.old = s.word;
      if (s.word == LatchWord::sole_reader(me).raw) s.word = LatchWord::owned_by(me).raw;
      break;
    case Post::kClaim:
      if (b.next == 0) {
        const bool shares = x.msi == MsiState::kShared;
        const NodeSet over = unpack(x).sharers;
        const bool swapped = LatchWord{s.word} == LatchWord::shared_by(shares ? over.with(me) : over);
        x.old = s.word;
        if (swapped) s.word = LatchWord::claimed_by(me, over).raw;
        last = !swapped || shares;
      } else {
        b.read_new = s.pool;
      }
      break;
    case Post::kTakeOver:
      if (b.next == 0) {
        x.old = s.word;
        const bool swapped = v.blind_take || s.word == taken_over(x).raw;
        if (swapped)
          s.word = LatchWord::claimed_by(me, {unpack(x).sharers.bits & ~repairable(s).bits}).raw &
                   ~LatchWord::add_reader(me);
        last = !swapped || x.msi == MsiState::kShared;
      } else {
        b.read_new = s.pool;
      }
      break;
    case Post::kDropShare:
      x.old = s.word;
      if (!v.pending_kept || x.op != LineOp::kWithdrawPosted) s.word += LatchWord::drop_reader(me);
      break;
    case Post::kRelease:
    case Post::kHandOver:
    case Post::kDowngrade:
      last = b.next == 1;
      if (write_turn) {
        if (!(v.no_write_back && b.post == Post::kHandOver)) s.pool = b.write_new, x.changed = 0;
        b.write_new = 0;
      } else {
        x.old = s.word;
        s.word += b.post == Post::kRelease ? LatchWord::drop_owner(me)
                  : b.post == Post::kHandOver
                      ? LatchWord::hand_over(me, id_of(b.to))
                      : LatchWord::downgrade(
                            me, x.op == LineOp::kDowngradePosted && !v.join_forgotten ? unpack(x).sharers : NodeSet());
        if (v.transient_bits && b.post == Post::kDowngrade) s.word += LatchWord::add_reader(id_of(b.to));
      }
      break;
    case Post::kNone:
      return;
  }
  b.next++;
  b.done = last;
  emit(s, fair(n, kExecute), "a verb of the batch runs");
}

void Explorer::complete(State s, int n) {
  NodeM& x = s.node[n];
  BatchM b = x.batch;
  uint64_t old = x.old;
  x.batch = BatchM{};
  x.old = 0;
  bool read = b.post == Post::kReadPage ||
              (b.next == 2 && (b.post == Post::kAddReader || b.post == Post::kProbe || b.post == Post::kTake ||
                               b.post == Post::kClaim || b.post == Post::kTakeOver));
  if (read) x.fresh = b.read_new;
  if (v.transient_bits && b.post == Post::kAddReader && LatchWord{old}.has_owner()) x.undo = 1;
  const bool answered = x.undo == kAnswered;
  if (answered) x.undo = 0;
  const auto granted = granted_by(s, n);
  if (v.blind_take && b.post == Post::kTakeOver) old = taken_over(x).raw;
  if (b.post == Post::kTakeOver && b.next == 2) repair(s, n, taken_over(x));
  event(s, n, {.kind = Event::Kind::kBatchDone, .answered = answered, .repairable = repairable(s), .old = old});
  for (const int k : granted) s.node[k].grant_in_flight = 0;
  emit(s, fair(n, kComplete), "the batch completes");
}

}  // namespace coherence::model
