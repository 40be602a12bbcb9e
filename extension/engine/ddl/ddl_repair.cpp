#include "extension/engine/ddl/ddl_repair.hpp"

namespace engine {

using coherence::NodeId;
using coherence::NodeSet;

namespace {

// What the slot's owner has posted, if it has: REQUIRES: nobody posts there.
bool read_own(DdlSlot slot, DdlHolder owner, DdlHeader* header) {
  const uint64_t number = slot.sequence();
  return number != 0 && slot.read(number, header) && (owner.is_heir() || header->holder == owner);
}

}  // namespace

DdlOutcome DdlRepair::outcome(DdlSlot slot) {
  const uint64_t txn = slot.txn();
  if (lost()) return DdlOutcome::kUnknown;
  return txn == 0 ? DdlOutcome::kRolledBack : host_.outcome(txn);
}

static bool decided(DdlOutcome outcome) {
  return outcome == DdlOutcome::kCommitted || outcome == DdlOutcome::kRolledBack;
}

// An owner that has posted nothing has left nothing to end.
template <class Dead>
void DdlRepair::take_over_slot(DdlSlot slot, Dead dead) {
  const DdlHolder owner = slot.owner();
  if (!owner.held() || !dead(owner) || !decided(outcome(slot))) return;
  DdlHeader header;
  const bool posted = read_own(slot, owner, &header);
  if (lost()) return;
  if (slot.replace_owner(owner, posted ? heir(slot.number()) : DdlHolder{})) host_.freed();
}

// Of a transaction that is in doubt, or has an heir, which frees them.
bool DdlRepair::is_kept(DdlHolder holder) {
  for (int i = 0; i < channel_.slots(); ++i) {
    DdlSlot slot = channel_.slot(i);
    const DdlHolder owner = slot.owner();
    DdlHeader header;
    if (owner == holder) return true;
    if (owner.held() && owner.is_heir() && read_own(slot, owner, &header) && header.holder == holder) return true;
  }
  return lost();
}

template <class Dead>
void DdlRepair::free_locks(Dead dead) {
  for (int lock = 0; lock <= kDdlDatabasesMax; ++lock) {
    const DdlHolder holder{channel_.locks().words(lock).holder};
    if (!holder.held() || !dead(holder) || is_kept(holder)) continue;
    channel_.locks().unlock(lock, holder);
    host_.freed();
  }
}

// Locks last: which of them are kept is known by the slots.
template <class Dead>
void DdlRepair::take_over_from(Dead dead) {
  for (int i = 0; i < channel_.slots(); ++i) take_over_slot(channel_.slot(i), dead);
  free_locks(dead);
}

// First, nobody waits for them: neither an heir nor a coordinator that lives.
void DdlRepair::take_over(NodeSet dead) {
  for (NodeSet left = dead; !left.empty(); left = left.without(left.first()))
    if (channel_.end_membership(left.first())) host_.freed();
  take_over_from([=](DdlHolder holder) { return dead.has(holder.node()); });
}

void DdlRepair::take_over_former_life() {
  const NodeId self = channel_.self();
  const auto now = uint8_t(incarnation_);
  take_over_from([=](DdlHolder holder) { return holder.node() == self && holder.incarnation() != now; });
}

// A holder's word is never an incarnation's that joins later (ddl_log.no-name-twice).
void DdlRepair::take_over_decided(const std::function<bool(NodeId)>& absent) {
  take_over_from([&](DdlHolder holder) { return absent(holder.node()); });
}

bool DdlRepair::names(NodeId dead) {
  if (channel_.membership(dead) != 0) return true;
  for (int i = 0; i < channel_.slots(); ++i) {
    const DdlHolder owner = channel_.slot(i).owner();
    if (owner.held() && owner.node() == dead && outcome(channel_.slot(i)) != DdlOutcome::kUndecided) return true;
  }
  for (int lock = 0; lock <= kDdlDatabasesMax; ++lock)
    if (const DdlHolder holder{channel_.locks().words(lock).holder};
        holder.held() && holder.node() == dead && !is_kept(holder))
      return true;
  return false;
}

// To all members of now, this node too.  False: not now.
bool DdlRepair::post_end(DdlSlot slot, DdlNewest newest, DdlHeader header) {
  const DdlOutcome how = outcome(slot);
  if (!decided(how)) return false;
  const bool committed = how == DdlOutcome::kCommitted;
  header.kind = committed ? DdlKind::kCommit : DdlKind::kAbort;
  header.bytes = header.total = header.offset = 0;
  header.to = channel_.everybody();
  if (lost()) return false;
  if (!committed) slot.cancel(newest.number());
  (void)slot.post(header, nullptr);
  host_.posted(slot.number(), header.to);
  return true;
}

// False: not all have dealt with the end.
bool DdlRepair::end_slot(DdlSlot slot) {
  DdlHeader header;
  const DdlNewest newest = slot.newest();
  if (!slot.read(newest.number(), &header)) return false;
  if (!newest.ends() && !post_end(slot, newest, header)) return false;
  slot.comes_behind();
  if (!slot.all_have_dealt()) return false;
  (void)channel_.locks().unlock_all(header.holder);
  slot.give_up(heir(slot.number()));
  host_.freed();
  return true;
}

bool DdlRepair::tend() {
  bool all = true;
  for (int i = 0; i < channel_.slots(); ++i) {
    DdlSlot slot = channel_.slot(i);
    if (slot.owner() == heir(i)) all &= end_slot(slot);
  }
  return all && !lost();
}

}  // namespace engine
