#include "extension/engine/ddl/ddl_slot.hpp"

#include <algorithm>

#include "coherence/base/verify.hpp"

namespace engine {

using coherence::Batch;
using coherence::NodeId;
using coherence::NodeSet;

bool DdlSlot::take(DdlHolder me, uint64_t now) {
  Batch batch(memory_node());
  const int i = batch.cas(word(kDdlSlotOwner), 0, me.raw);
  if (!region_->run(batch) || !batch.cas_succeeded(i)) return false;
  region_->store(word(kDdlSlotTxn), 0);
  region_->store(word(kDdlSlotGranted), 0);
  region_->store(word(kDdlSlotSince), now);
  return !region_->lost();
}

bool DdlSlot::replace_owner(DdlHolder from, DdlHolder to) {
  Batch batch(memory_node());
  const int i = batch.cas(word(kDdlSlotOwner), from.raw, to.raw);
  return region_->run(batch) && batch.cas_succeeded(i);
}

DdlHolder DdlSlot::owner(uint64_t* since) {
  if (since) *since = region_->load(word(kDdlSlotSince));
  return {region_->load(word(kDdlSlotOwner))};
}

uint64_t DdlSlot::post(const DdlHeader& header, const void* body) {
  VERIFY(header.bytes <= window_bytes());
  const DdlNewest before = newest(), next = DdlNewest::of(before.number() + 1, header.kind);
  Batch batch(memory_node());
  if (header.bytes) batch.write(word(region_->window_offset()), body, header.bytes);
  batch.write(word(kDdlSlotHeader), &header, sizeof header);
  batch.cas(word(kDdlSlotSequence), before.raw, next.raw);
  (void)region_->run(batch);  // lost, nobody is seen to answer it
  return next.number();
}

DdlReply DdlSlot::reply_of(NodeId node, uint64_t incarnation, uint64_t sequence) {
  Batch batch(memory_node());
  const int ack = batch.load(cell(node, offsetof(DdlCell, ack)));
  const int member = batch.load(region_->member_at(node));
  if (!region_->run(batch)) return DdlReply::kPending;
  const uint64_t value = batch.op(ack).old;
  if (value >> 1 >= sequence) return value & 1 ? DdlReply::kFailed : DdlReply::kDone;
  return batch.op(member).old == incarnation ? DdlReply::kPending : DdlReply::kGone;
}

uint32_t DdlSlot::reply_text(NodeId node, char* to) {
  DdlCell copy;
  Batch batch(memory_node());
  batch.read(cell(node, 0), &copy, sizeof copy);
  if (!region_->run(batch)) return 0;
  const uint32_t bytes = std::min(copy.bytes, kDdlReplyBytes);
  std::copy_n(copy.text, bytes, to);
  return bytes;
}

void DdlSlot::cancel(uint64_t sequence) { region_->store(word(kDdlSlotCancelled), sequence); }
void DdlSlot::set_txn(uint64_t txn) { region_->store(word(kDdlSlotTxn), txn); }
uint64_t DdlSlot::txn() { return region_->load(word(kDdlSlotTxn)); }
DdlNewest DdlSlot::newest() { return {region_->load(word(kDdlSlotSequence))}; }
uint64_t DdlSlot::cancelled() { return region_->load(word(kDdlSlotCancelled)); }

// All that acknowledge change one word, and so does an heir when it has become the owner: of two, one comes behind.
void DdlSlot::comes_behind() { (void)region_->load_newest(word(kDdlSlotSequence)); }

// A node that has left has no session to protect, and a node that came back has dealt with all before it.
bool DdlSlot::all_have_dealt() {
  DdlHeader header;
  const uint64_t newest = sequence();
  if (region_->lost()) return false;
  if (newest == 0) return true;
  if (!read(newest, &header)) return false;
  for (NodeSet left = header.to; !left.empty(); left = left.without(left.first()))
    if (const uint64_t member = region_->load(region_->member_at(left.first()));
        member != 0 && reply_of(left.first(), member, newest) == DdlReply::kPending)
      return false;
  return !region_->lost();
}

bool DdlSlot::read(uint64_t sequence, DdlHeader* header) {
  Batch batch(memory_node());
  batch.read(word(kDdlSlotHeader), header, sizeof *header);
  const int i = batch.load(word(kDdlSlotSequence));
  if (!region_->run(batch)) return false;
  header->database[kDdlDatabaseBytes - 1] = 0;
  return DdlNewest{batch.op(i).old}.number() == sequence;
}

bool DdlSlot::read_body(const DdlMessage& message, void* to) {
  if (message.header.bytes > window_bytes()) return false;
  Batch batch(memory_node());
  if (message.header.bytes) batch.read(word(region_->window_offset()), to, message.header.bytes);
  const int i = batch.load(word(kDdlSlotSequence));
  return region_->run(batch) && DdlNewest{batch.op(i).old}.number() == message.sequence;
}

uint64_t DdlSlot::acknowledged() { return region_->load(cell(region_->self(), offsetof(DdlCell, ack))) >> 1; }

// Its owner; and where that has given it up, the node that had it.
NodeId DdlSlot::who_waits() {
  const DdlHolder waits = owner();
  if (waits.held()) return waits.node();
  DdlHeader header;
  (void)read(sequence(), &header);
  return region_->lost() ? NodeId{} : NodeId{header.coordinator};
}

NodeId DdlSlot::acknowledge(uint64_t sequence, bool ok, std::string_view text) {
  DdlCell reply{};
  reply.bytes = uint32_t(std::min<size_t>(text.size(), kDdlReplyBytes));
  std::copy_n(text.data(), reply.bytes, reply.text);
  const NodeId self = region_->self();
  const uint64_t before = region_->load(cell(self, offsetof(DdlCell, ack)));
  if (region_->lost()) return {};
  if (before >> 1 >= sequence) return who_waits();
  Batch batch(memory_node());
  constexpr uint32_t kFrom = offsetof(DdlCell, bytes);
  batch.write(cell(self, kFrom), reinterpret_cast<const char*>(&reply) + kFrom, sizeof reply - kFrom);
  batch.cas(cell(self, offsetof(DdlCell, ack)), before, sequence << 1 | !ok);
  if (!region_->run(batch)) return {};
  comes_behind();
  return ok && !all_have_dealt() ? NodeId{} : who_waits();
}

void DdlSlot::acknowledge_all() {
  begin(0);
  region_->store(cell(region_->self(), offsetof(DdlCell, ack)), sequence() << 1);
}

bool DdlSlot::has_begun(uint64_t transaction) {
  return region_->load(cell(region_->self(), offsetof(DdlCell, begun))) == transaction;
}

void DdlSlot::begin(uint64_t transaction) {
  region_->store(cell(region_->self(), offsetof(DdlCell, begun)), transaction);
}

void DdlSlot::list_target(uint32_t index, DdlTargetWord target) {
  if (index >= kDdlTargetsMax) return;
  Batch batch(memory_node());
  batch.write(word(kDdlSlotTargets + index * uint32_t(sizeof target)), &target, sizeof target);
  (void)region_->run(batch);
}

void DdlSlot::set_granted(uint32_t count) {
  region_->store(word(kDdlSlotGranted), count <= kDdlTargetsMax ? count : kDdlMoreTargets);
}

bool DdlSlot::read_granted(DdlGranted* granted) {
  granted->transaction = 0;
  granted->count = 0;
  granted->sequence = DdlNewest{region_->load_newest(word(kDdlSlotSequence))}.number();  // ddl_log.joiner-takes-locks
  if (region_->lost()) return false;
  if (granted->sequence == 0) return true;
  if (!read(granted->sequence, &granted->header)) return false;
  const DdlKind kind = granted->header.kind;
  if (kind == DdlKind::kAbort || kind == DdlKind::kCommit) return true;
  Batch batch(memory_node());
  const int owner = batch.load(word(kDdlSlotOwner));
  const int count = batch.faa(word(kDdlSlotGranted), 0);
  batch.read(word(kDdlSlotTargets), granted->target, sizeof granted->target);
  const int sequence = batch.load(word(kDdlSlotSequence)), again = batch.load(word(kDdlSlotGranted));
  if (!region_->run(batch)) return false;
  if (DdlNewest{batch.op(sequence).old}.number() != granted->sequence || batch.op(count).old != batch.op(again).old)
    return false;
  granted->owner = {batch.op(owner).old};
  granted->count = uint32_t(batch.op(count).old);
  granted->transaction = granted->header.transaction;
  return true;
}

}  // namespace engine
