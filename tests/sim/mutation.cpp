#include "mutation.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "cluster.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/line/line_machine.hpp"
#include "coherence/transport/memory.hpp"
#include "scheduler.hpp"
#include "seams.hpp"

namespace coherence {

// The product's: line_machine.cpp is compiled with its name changed.
Actions product_step(LineState& state, NodeId self, const Event& event, Features on);

}  // namespace coherence

namespace sim {

Mutation mutation = Mutation::kNone;

namespace {

using namespace coherence;

uint64_t added_bits[kNodesMax];  // kTransientBits: what node n's next downgrade adds for the requester

std::vector<const volatile void*> free_lists;  // kUncounted

bool sometimes(uint64_t one_in) { return scheduler() && scheduler()->random().one_in(one_in); }

void drop_replies(Actions& a, ReplyKind kind) {
  int kept = 0;
  for (int i = 0; i < a.reply_count; i++)
    if (a.replies[i].kind != kind) a.replies[kept++] = a.replies[i];
  a.reply_count = uint8_t(kept);
}

// Grants at once what is granted after the batch, and no node knows that it is in flight.
void grant_first(const LineState& s, LineOp before, LineOp op, ReplyKind kind, Actions& a) {
  if (before == op) drop_replies(a, kind);
  if (s.op == op && before != op) a.replies[a.reply_count++] = {s.serving, kind};
}

void transient_bits(const LineState& s, NodeId self, Actions& a) {
  if (a.post == Post::kProbe) a.post = Post::kAddReader;
  if (a.post == Post::kDowngrade) added_bits[self.value] = LatchWord::add_reader(NodeId{s.serving.from});
}

Actions refuse(const PeerRequest& request) {
  Actions a;
  a.replies[a.reply_count++] = {request, ReplyKind::kDropped};
  return a;
}

Actions mutated_step(LineState& s, NodeId self, Event e, Features on) {
  const LineOp before = s.op;
  const bool claimed = e.kind == Event::Kind::kPeer && e.request.kind == RequestKind::kPeerClaim;
  if (mutation == Mutation::kClaimRefused && claimed && before != LineOp::kIdle) return refuse(e.request);
  const LatchWord old{e.old};
  if (mutation == Mutation::kFalseGrant && e.kind == Event::Kind::kBatchDone && before == LineOp::kWritePosted &&
      !old.has_owner())
    e.old = 0;
  if (mutation == Mutation::kInFlightLeaves && e.kind == Event::Kind::kReply) observer->confirm(s);
  if (mutation == Mutation::kNoAging) e.request.priority = uint8_t(255 - e.request.priority);
  Actions a = product_step(s, self, e, on);
  switch (mutation) {
    case Mutation::kForwardFirst:
      grant_first(s, before, LineOp::kHandOverPosted, ReplyKind::kGrantM, a);
      break;
    case Mutation::kDowngradeFirst:
      grant_first(s, before, LineOp::kDowngradePosted, ReplyKind::kGrantS, a);
      break;
    case Mutation::kJoinForgotten:
      if (a.post == Post::kDowngrade) a.over = NodeSet();
      break;
    case Mutation::kTransientBits:
      transient_bits(s, self, a);
      break;
    case Mutation::kGrantLost:
      if (sometimes(20)) drop_replies(a, ReplyKind::kGrantM);
      break;
    case Mutation::kKeptShare:
      if (before == LineOp::kInvalidatePosted) s.msi = MsiState::kShared;
      break;
    case Mutation::kLatchKept:
      if (before == LineOp::kInvalidatePosted && sometimes(8)) a.latch = LatchEnd::kKeep;
      break;
    case Mutation::kPageStolen:
      if (a.finished && e.kind == Event::Kind::kReply && a.latch == LatchEnd::kToCaller) a.latch = LatchEnd::kRelease;
      break;
    default:
      break;
  }
  return a;
}

// A fiber of no node does it, some time from now.
void later(const Op& op, std::byte* base) {
  scheduler()->spawn(Scheduler::kNobody, [op, base] {
    scheduler()->sleep(scheduler()->random().between(1'000, 30'000));
    auto* there = base + op.at.offset();
    if (op.verb == Verb::kFaa)
      *reinterpret_cast<uint64_t*>(there) += op.operand;
    else
      memcpy(there, op.local, op.bytes);
  });
}

NodeId handed_to(const Op& op) {
  NodeId self{uint8_t(scheduler()->node())};
  for (uint8_t n = 0; n < kNodesMax; n++)
    if (op.operand == LatchWord::hand_over(self, NodeId{n})) return NodeId{n};
  return {};
}
bool hands_over(const Op& op) { return handed_to(op).valid(); }

// kRepairableEarly: what gives a page to a dead node is on its way for long, sometimes.
void linger_for_dead(const Op& op) {
  const NodeId to = handed_to(op);
  if (to.valid() && scheduler()->crashed(to.value) && sometimes(2))
    scheduler()->sleep(scheduler()->random().below(40 * kMs));
}

// kForgottenEarly: what takes a dead node's place, or drops its bit, is on its way for long, sometimes.
void linger_over_dead(const Op& op) {
  const LatchWord word{op.expect};
  bool names_dead = false;
  for (NodeSet left = word.readers(); !left.empty(); left = left.without(left.first()))
    names_dead |= scheduler()->crashed(left.first().value);
  names_dead |= word.has_owner() && scheduler()->crashed(word.owner().value);
  if (names_dead && sometimes(2)) scheduler()->sleep(scheduler()->random().below(40 * kMs));
}

// The atomic of a batch that has a WRITE: its last operation.
const Op* atomic_of(const Batch& batch) {
  const Op& last = batch.op(batch.size() - 1);
  return last.verb == Verb::kFaa ? &last : nullptr;
}

}  // namespace

void begin_mutation(Mutation m) {
  mutation = m;
  std::fill(std::begin(added_bits), std::end(added_bits), 0);
  free_lists.clear();
}

void note_free_list(const void* head) { free_lists.push_back(head); }

bool linger_at(const volatile void* word) {
  if (std::find(free_lists.begin(), free_lists.end(), word) == free_lists.end()) return false;
  if (scheduler()->in_fiber() && sometimes(2)) scheduler()->sleep(scheduler()->random().below(200 * kUs));
  return true;
}

void linger_in_copy() {
  if (scheduler()->calm() || scheduler()->node() < 0) return;
  if (scheduler()->random().one_in(200)) scheduler()->sleep(scheduler()->random().below(100 * kUs));
}

const char* mutation_name(Mutation m) {
  static constexpr const char* kNames[] = {"none",
                                           "forward-first",
                                           "downgrade-first",
                                           "in-flight-leaves",
                                           "false-grant",
                                           "claim-refused",
                                           "join-forgotten",
                                           "transient-bits",
                                           "grant-lost",
                                           "kept-share",
                                           "latch-kept",
                                           "page-stolen",
                                           "no-aging",
                                           "double-add",
                                           "errors-ignored",
                                           "released-use",
                                           "no-write-back",
                                           "freed-before-written",
                                           "lost-pending-reader",
                                           "nobody-watches",
                                           "long-sleeps",
                                           "no-turn-limit",
                                           "taken-twice",
                                           "log-ignored",
                                           "former-request-taken",
                                           "former-reply-acted",
                                           "unknown-succeeds",
                                           "event-first",
                                           "redo-forgotten",
                                           "one-redo",
                                           "swept-unwritten",
                                           "former-grant-lands",
                                           "bit-dropped-late",
                                           "copies-in-ring",
                                           "death-unrecorded",
                                           "hole-overlooked",
                                           "recording-waits",
                                           "join-unrecorded",
                                           "logs-apart",
                                           "not-put-back",
                                           "applied-again",
                                           "gap-applied",
                                           "group-torn",
                                           "death-recorded-late",
                                           "version-first",
                                           "range-lost",
                                           "checkpoint-pages-lost",
                                           "checkpoint-named-first",
                                           "rings-dropped-early",
                                           "join-unseen",
                                           "saying-former",
                                           "repairable-early",
                                           "forgotten-early",
                                           "join-abandoned",
                                           "unknown-leave-counts",
                                           "cut-off-goes-on",
                                           "wake-lost",
                                           "wake-overtakes",
                                           "table-lost",
                                           "not-unpublished",
                                           "unpublished-first",
                                           "counted-as-written",
                                           "latched-freed",
                                           "not-validated",
                                           "uncounted",
                                           "wakeup-lost"};
  static_assert(sizeof kNames / sizeof kNames[0] == size_t(Mutation::kCount));
  return kNames[int(m)];
}

Mutation mutation_of(const std::string& name) {
  for (int m = 0; m < int(Mutation::kCount); m++)
    if (name == mutation_name(Mutation(m))) return Mutation(m);
  return Mutation::kCount;
}

// kVersionFirst: the version of a page is the last WRITE of a write-back, before what gives the page away.
int version_in(const Batch& batch) {
  constexpr uint32_t kVersionBytes = 8;  // coherence/session/write_back.cpp
  int last = batch.size() - 1;
  while (last > 0 && batch.op(last).verb != Verb::kWrite) last--;
  return last > 0 && batch.op(last).bytes == kVersionBytes ? last : 0;
}

int verb_order(const Batch& batch, int i) {
  if (mutation == Mutation::kVersionFirst)
    if (const int version = version_in(batch); i <= version) return i == 0 ? version : i - 1;
  if (mutation != Mutation::kFreedBeforeWritten || !atomic_of(batch)) return i;
  return i == 0 ? batch.size() - 1 : i - 1;
}

bool mutate_verb(const Batch& batch, Op& op, std::byte* base) {
  if (mutation == Mutation::kNone || !scheduler() || scheduler()->node() < 0) return false;
  const NodeId self{uint8_t(scheduler()->node())};
  auto* const word = reinterpret_cast<uint64_t*>(base + op.at.offset());
  switch (mutation) {
    case Mutation::kDoubleAdd:
      if (op.verb != Verb::kFaa || op.operand != LatchWord::drop_reader(self)) return false;
      op.old = *word;
      later(op, base);
      return true;
    case Mutation::kErrorsIgnored:
      if (op.verb != Verb::kCas || !sometimes(20)) return false;
      op.old = op.expect;
      return true;
    case Mutation::kReleasedBeforeUse:
      if (op.verb != Verb::kWrite) return false;
      later(op, base);
      return true;
    case Mutation::kNoWriteBack: {
      const Op* atomic = op.verb == Verb::kWrite ? atomic_of(batch) : nullptr;
      return atomic && hands_over(*atomic);
    }
    case Mutation::kRepairableEarly:
      if (op.verb == Verb::kFaa) linger_for_dead(op);
      return false;
    case Mutation::kForgottenEarly:
      if (op.verb == Verb::kCas) linger_over_dead(op);
      return false;
    case Mutation::kLostPendingReader:
      if (op.verb != Verb::kFaa || op.operand != LatchWord::add_reader(self) || !LatchWord{*word}.has_owner())
        return false;
      op.old = *word;
      return true;
    case Mutation::kTransientBits:
      if (op.verb != Verb::kFaa) return false;
      if (op.operand == LatchWord::add_reader(self) && LatchWord{*word}.has_owner()) {
        Op back = op;
        back.operand = LatchWord::drop_reader(self);
        later(back, base);
      }
      if (op.operand == LatchWord::downgrade(self)) op.operand += std::exchange(added_bits[self.value], 0);
      return false;
    default:
      return false;
  }
}

}  // namespace sim

namespace coherence {

Actions step(LineState& state, NodeId self, const Event& event, Features on) {
  const LineState before = state;
  if (event.kind == Event::Kind::kPeer) sim::note_request(self, state);
  const Actions actions = sim::mutation == sim::Mutation::kNone ? product_step(state, self, event, on)
                                                                : sim::mutated_step(state, self, event, on);
  if (sim::tracing) sim::trace_step(before, self, event, state);
  return actions;
}

}  // namespace coherence
