// The worker's part of a MessageServer when other nodes have died: this node quiesces, and drains (repair.*).
#include "coherence/base/os.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/line/parked_requests.hpp"
#include "coherence/session/message_server.hpp"
#include "coherence/session/write_back.hpp"

namespace coherence {
namespace {

// Whether the operation that the line has under way serves the node: its batch may still write the node's bits.
bool serves(const LineState& s, NodeId node) {
  switch (s.op) {
    case LineOp::kHandOverPosted:
    case LineOp::kInvalidatePosted:
    case LineOp::kGiveUpPosted:
      return s.serving.from == node.value;
    case LineOp::kDowngradePosted:
      return s.serving.from == node.value || s.sharers.has(node);
    default:
      return false;
  }
}

bool takes_over(const LineState& s) { return s.op == LineOp::kTakeReadPosted || s.op == LineOp::kTakeWritePosted; }

}  // namespace

// Whether something is left to do, here or elsewhere.  One load while nobody comes, goes or dies.
bool MessageServer::look_after_dead() noexcept {
  Membership& members = *session_.node.members;
  const uint64_t view = members.view();
  if (view == deaths_view_ || session_.node.fenced()) return false;
  bool done = true;
  for (uint32_t n = 0; n < members.nodes_max(); n++) {
    const NodeId node{uint8_t(n)};
    const MemberState state = members.info(node).state;
    if (state == MemberState::kDead && !members.repairable().has(node)) done &= quiesce(node) && members.quiesced(node);
    if (state == MemberState::kSwept) done &= drain(node) && members.drained(node);
  }
  if (done) deaths_view_ = view;
  return !done;
}

bool MessageServer::quiesce(NodeId dead) noexcept {
  NodeParts& node = session_.node;
  bool quiesced = true;
  for (uint32_t i = 0; i < node.frames; i++) quiesced &= quiesce(node.line(i), dead);
  return quiesced;
}

// The dead node granted the line early, and its batch is not complete: it never will be.  What the grant says becomes
// true by this node's hand (repair.quiesced-first).
bool MessageServer::confirm_grant(Line& line, NodeId dead) noexcept {
  NodeParts& node = session_.node;
  const NodeId self = node.id;
  if (!node.grant_in_flight_from(line, dead)) return true;
  if (!driver_.has_room()) return false;
  collect(line);  // the grant may have come, and not been looked at
  LineState state;
  {
    SpinGuard guard(fields(line).spin, node.fence);
    state = fields(line).state;
  }
  if (state.msi == MsiState::kShared) {  // so the page cannot change; as long as a grant is in flight it stays here
    Batch batch(line.page().node());
    add_whole_page(node, batch, line);
    if (!session_.memory.run(batch)) return false;
  }
  const PoolAddress at = node.pool.latch_address(line.page());
  for (;;) {
    const auto found = session_.memory.load(at);
    if (!found) return false;
    const LatchWord word{*found};
    const bool stands = word.owner() == dead;
    // A share lies below the dead owner until that one is repairable: its other readers quiesce, too.
    uint64_t change = 0;
    if (state.msi == MsiState::kModified && stands) change = LatchWord::hand_over(dead, self);
    if (state.msi == MsiState::kShared && !word.readers().has(self)) change = LatchWord::add_reader(self);
    if (change == 0) break;
    const auto old = session_.memory.cas(at, word.raw, word.raw + change);
    if (!old) return false;
    if (*old == word.raw) break;
  }
  // Before the line may leave.  Its sessions may be changing the page: `dirty` is theirs.
  if (state.msi == MsiState::kModified) fields(line).all_dirty.store(true, std::memory_order_release);
  node.in_flight[node.index_of(line)].store(0, std::memory_order_seq_cst);
  leave_to_worker(line, false);  // what is parked may go on
  return true;
}

// Nothing that this node does for the line concerns the dead node afterwards, and nothing will: receive() looks at the
// node table under the same spinlock.
bool MessageServer::quiesce(Line& line, NodeId dead) noexcept {
  if (!confirm_grant(line, dead) || !driver_.has_room()) return false;
  Actions actions;
  uint16_t slot;
  {
    SpinGuard guard(fields(line).spin, session_.node.fence);
    const LineState& state = fields(line).state;
    if (serves(state, dead)) return false;
    if (!has_parked(state, dead)) return true;
    actions = driver_.step_line(line, {.kind = Event::Kind::kGone, .from = dead});
    slot = fields(line).op_slot;
  }
  after(line, driver_.run(line, actions, slot));  // an operation that waits for the dead node asks once more
  return true;
}

// The order of the two loads is that of drop_dead(), the other way round.
bool MessageServer::drain(NodeId dead) noexcept {
  NodeParts& node = session_.node;
  if (node.arena->sweeping.load(std::memory_order_seq_cst) != 0) return false;
  for (uint32_t i = 0; i < node.frames; i++) {
    Line& line = node.line(i);
    SpinGuard guard(fields(line).spin, node.fence);
    const LineState& state = fields(line).state;
    if (takes_over(state) && (state.taken_from == dead || state.sharers.has(dead))) return false;
  }
  return true;
}

}  // namespace coherence
