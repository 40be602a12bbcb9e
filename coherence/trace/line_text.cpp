#include "coherence/trace/line_text.hpp"

#include <cstring>
#include <iterator>

#include "coherence/message/slots.hpp"

namespace coherence {
namespace {

// A line that is read from outside may hold anything, and not every byte is a bool.
bool is_set(const bool& field) noexcept {
  uint8_t byte;
  memcpy(&byte, &field, sizeof byte);
  return byte != 0;
}

template <class E, size_t kCount>
const char* name_of(E value, const char* const (&names)[kCount]) noexcept {
  return size_t(value) < kCount ? names[size_t(value)] : "?";
}

unsigned long long wide(uint64_t value) { return value; }

}  // namespace

const char* text(MsiState m) noexcept {
  static constexpr const char* kNames[] = {"I", "S", "M"};
  static_assert(std::size(kNames) == size_t(MsiState::kModified) + 1);
  return name_of(m, kNames);
}

const char* text(RequestKind k) noexcept {
  static constexpr const char* kNames[] = {"", "PeerRd", "PeerWr", "PeerInv", "PeerCopy", "PeerClaim", "PeerJoin"};
  static_assert(std::size(kNames) == size_t(RequestKind::kPeerJoin) + 1);
  return name_of(k, kNames);
}

const char* text(ReplyKind k) noexcept {
  static constexpr const char* kNames[] = {
      "", "Dropped", "Done", "GrantS", "GrantM", "GrantS, in pool", "GrantM, in pool", "Copy", "Held"};
  static_assert(std::size(kNames) == size_t(ReplyKind::kHeld) + 1);
  return name_of(k, kNames);
}

const char* text(LineOp op) noexcept {
  static constexpr const char* kNames[] = {"",         "read",     "probe",   "write",     "reclaim",    "upgrade",
                                           "fallback", "withdraw", "evict",   "handover",  "downgrade",  "invalidate",
                                           "give up",  "claim",    "unclaim", "take read", "take write", "repaired",
                                           "WaitS",    "WaitX",    "WaitU",   "WaitC"};
  static_assert(std::size(kNames) == size_t(LineOp::kWaitClaimed) + 1);
  return name_of(op, kNames);
}

const char* text(Event::Kind k) noexcept {
  static constexpr const char* kNames[] = {
      "fetch shared", "fetch copy", "fetch exclusive", "evict", "batch done", "request", "reply", "gone", "serve"};
  static_assert(std::size(kNames) == size_t(Event::Kind::kServe) + 1);
  return name_of(k, kNames);
}

const char* text(Post p) noexcept {
  static constexpr const char* kNames[] = {"",
                                           "FAA +b; READ",
                                           "LOAD word; READ",
                                           "CAS 0->X; READ",
                                           "READ",
                                           "CAS b->X",
                                           "CAS s->s+X",
                                           "FAA -b",
                                           "WRITE dirty; FAA -X",
                                           "WRITE dirty; FAA X_j-X",
                                           "WRITE dirty; FAA b-X",
                                           "CAS w->X+s; READ"};
  static_assert(std::size(kNames) == size_t(Post::kTakeOver) + 1);
  return name_of(p, kNames);
}

const char* text(LatchEnd e) noexcept {
  static constexpr const char* kNames[] = {"", "free", "shared", "the caller's"};
  static_assert(std::size(kNames) == size_t(LatchEnd::kToCaller) + 1);
  return name_of(e, kNames);
}

void add(Text& to, PageId page) noexcept {
  if (!page.valid()) {
    to.add("none");
  } else {
    to.add("%u:%llu", page.node().value, wide(page.number()));
  }
}

void add(Text& to, NodeSet nodes) noexcept {
  to.add("{");
  for (const char* before = ""; !nodes.empty(); nodes = nodes.without(nodes.first()), before = ", ")
    to.add("%s%u", before, nodes.first().value);
  to.add("}");
}

void add(Text& to, LatchWord word) noexcept {
  to.add("%016llx: ", wide(word.raw));
  if (!word.well_formed()) {
    to.add("not a latch word: its owner is %u", unsigned(word.raw >> LatchWord::kOwnerShift));
  } else if (word == LatchWord::free()) {
    to.add("free");
  } else if (word.has_owner()) {
    to.add("owned by node %u", word.owner().value);
    if (word.readers().empty()) return;
    to.add(", pending readers, or shares asked back, ");
    add(to, word.readers());
  } else {
    to.add("shared by ");
    add(to, word.readers());
  }
}

void add(Text& to, LocalWord word) noexcept {
  to.add("%016llx: %s, version %u", wide(word.raw), text(word.msi()), word.version());
  if (word.exclusive()) to.add(", latched X");
  if (word.shared() != 0) to.add(", %u shared holders", word.shared());
  if (word.pending()) to.add(", a request is parked");
  if (word.raw & LocalWord::kExclusiveWaiters) to.add(", waiters for X");
  if (word.raw & LocalWord::kSharedWaiters) to.add(", waiters for S");
  if (word.free()) to.add(", free");
}

void add(Text& to, const PeerRequest& r) noexcept {
  to.add("%s from node %u, session %u (slot %u), priority %u, round %u", text(r.kind), r.from,
         unsigned(r.slot / kSlotsPerSession), unsigned(r.slot % kSlotsPerSession), r.priority, r.id);
}

void add(Text& to, const LineState& s) noexcept {
  to.add("state    %s, operation %s", text(s.msi), s.op == LineOp::kIdle ? "none" : text(s.op));
  if (s.failures) to.add(", %u failures", s.failures);
  if (s.priority) to.add(", priority %u", s.priority);
  if (s.granted != ReplyKind::kNone) to.add(", got %s", text(s.granted));
  if (is_set(s.copy_will_do)) to.add(", a copy will do");
  if (is_set(s.joins)) to.add(", joins");
  if (s.hints) to.add(", %u hints followed", s.hints);
  if (s.bar) to.add(", bar %u", s.bar);
  if (s.passed_to.valid()) to.add(", passed to node %u", s.passed_to.value);
  if (!s.waiting.empty()) add(to.add("\n  waits for the replies of "), s.waiting);
  if (!s.sharers.empty()) add(to.add("\n  sharers  "), s.sharers);
  if (s.holds_shared || s.holds_exclusive)
    to.add("\n  holds    %u shared, %u exclusive, the newest of transaction %llx", s.holds_shared, s.holds_exclusive,
           wide(s.held_by));
  if (s.serving.kind != RequestKind::kNone) add(to.add("\n  serves   "), s.serving);
  for (int i = 0; i < s.parked_count && i < kParkedMax; i++) add(to.add("\n  parked   "), s.parked[i]);
}

void add(Text& to, const Line::Sight& line) noexcept {
  add(to.add("page     "), line.page);
  add(to.add("\n  local    "), line.latch);
  if (line.spin) to.add("\n  spinlock taken");
  add(to.add("\n  "), line.state);
  if (line.state.op != LineOp::kIdle)
    to.add("\n  asker    session %u (slot %u)", unsigned(line.op_slot / kSlotsPerSession),
           unsigned(line.op_slot % kSlotsPerSession));
  if (line.dirty[0] | line.dirty[1])
    to.add("\n  dirty    %016llx%016llx, in the log up to %llX", wide(line.dirty[1]), wide(line.dirty[0]),
           wide(line.lsn.value));
  if (line.first_change != Line::kNoChange)
    to.add("\n  redo     is kept from ring position %llu on", wide(line.first_change));
  if (line.writing) to.add("\n  a write-back is under way");
  if (line.turns)
    to.add("\n  turns    %u of readers, %u of writers since a request is parked", unsigned(uint32_t(line.turns)),
           unsigned(line.turns >> 32));
}

}  // namespace coherence
