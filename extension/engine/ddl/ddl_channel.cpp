#include "extension/engine/ddl/ddl_channel.hpp"

#include <algorithm>
#include <cstddef>

#include "coherence/base/verify.hpp"

namespace engine {

using coherence::Batch;
using coherence::NodeId;
using coherence::PageId;
using coherence::PoolAddress;

DdlChannel::DdlChannel(coherence::Memory& memory, PoolAddress at, uint64_t bytes, NodeId self)
    : memory_(memory), at_(at), self_(self) {
  VERIFY(bytes >= kDdlWindow + 4096);
  window_bytes_ = uint32_t(std::min<uint64_t>(bytes - kDdlWindow, kDdlWindowBytesMax));
}

void DdlChannel::run(Batch& batch) {
  memory_.post(batch);
  memory_.wait(batch);
}

uint64_t DdlChannel::load(PoolAddress at) {
  Batch batch(at.node());
  const int i = batch.load(at);
  run(batch);
  return batch.op(i).old;
}

// Words here have one writer at a time; a CAS stores them whole.
void DdlChannel::store(PoolAddress at, uint64_t value) {
  uint64_t seen = load(at);
  while (seen != value) {
    Batch batch(at.node());
    const int i = batch.cas(at, seen, value);
    run(batch);
    if (batch.cas_succeeded(i)) return;
    seen = batch.op(i).old;
  }
}

bool DdlChannel::try_lock(DdlHolder me, uint64_t now) {
  Batch batch(at_.node());
  const int i = batch.cas(word(kDdlLock), 0, me.raw);
  run(batch);
  if (!batch.cas_succeeded(i)) return false;
  store(word(kDdlSince), now);
  return true;
}

void DdlChannel::unlock(DdlHolder me) {
  Batch batch(at_.node());
  batch.cas(word(kDdlLock), me.raw, 0);
  run(batch);
}

DdlHolder DdlChannel::holder(uint64_t* since) {
  if (since) *since = load(word(kDdlSince));
  return {load(word(kDdlLock))};
}

void DdlChannel::join(uint64_t incarnation) {
  store(cell(self_, offsetof(DdlCell, ack)), sequence() << 1);
  store(cell(self_, offsetof(DdlCell, member)), incarnation);
}

void DdlChannel::leave() { store(cell(self_, offsetof(DdlCell, member)), 0); }

DdlMembers DdlChannel::members() {
  DdlMembers all{};
  Batch batch(at_.node());
  for (int n = 0; n < coherence::kNodesMax; ++n) batch.load(cell(NodeId{uint8_t(n)}, offsetof(DdlCell, member)));
  run(batch);
  for (int n = 0; n < coherence::kNodesMax; ++n) {
    all.incarnation[n] = batch.op(n).old;
    if (all.incarnation[n] && n != self_.value) all.nodes = all.nodes.with(NodeId{uint8_t(n)});
  }
  return all;
}

uint64_t DdlChannel::log_entries() { return load(word(kDdlLogEntries)); }
void DdlChannel::set_log_entries(uint64_t count) { store(word(kDdlLogEntries), count); }

uint64_t DdlChannel::membership(NodeId node) { return load(cell(node, offsetof(DdlCell, member))); }

uint64_t DdlChannel::life() { return load(cell(self_, offsetof(DdlCell, life))); }
void DdlChannel::set_life(uint64_t life) { store(cell(self_, offsetof(DdlCell, life)), life); }

uint64_t DdlChannel::post(const DdlHeader& header, const void* body) {
  VERIFY(header.bytes <= window_bytes_);
  const uint64_t before = sequence();
  Batch batch(at_.node());
  if (header.bytes) batch.write(word(kDdlWindow), body, header.bytes);
  batch.write(word(kDdlHeader), &header, sizeof header);
  batch.cas(word(kDdlSequence), before, before + 1);
  run(batch);
  return before + 1;
}

DdlReply DdlChannel::reply_of(NodeId node, uint64_t incarnation, uint64_t sequence) {
  Batch batch(at_.node());
  const int ack = batch.load(cell(node, offsetof(DdlCell, ack)));
  const int member = batch.load(cell(node, offsetof(DdlCell, member)));
  run(batch);
  const uint64_t value = batch.op(ack).old;
  if (value >> 1 >= sequence) return value & 1 ? DdlReply::kFailed : DdlReply::kDone;
  return batch.op(member).old == incarnation ? DdlReply::kPending : DdlReply::kGone;
}

uint32_t DdlChannel::reply_text(NodeId node, char* to) {
  DdlCell copy;
  Batch batch(at_.node());
  batch.read(cell(node, 0), &copy, sizeof copy);
  run(batch);
  const uint32_t bytes = std::min(copy.bytes, kDdlReplyBytes);
  std::copy_n(copy.text, bytes, to);
  return bytes;
}

void DdlChannel::cancel(uint64_t sequence) { store(word(kDdlCancelled), sequence); }

uint64_t DdlChannel::sequence() { return load(word(kDdlSequence)); }
uint64_t DdlChannel::cancelled() { return load(word(kDdlCancelled)); }

bool DdlChannel::read(uint64_t sequence, DdlHeader* header) {
  Batch batch(at_.node());
  batch.read(word(kDdlHeader), header, sizeof *header);
  const int i = batch.load(word(kDdlSequence));
  run(batch);
  header->database[kDdlDatabaseBytes - 1] = 0;
  return batch.op(i).old == sequence;
}

bool DdlChannel::read_body(const DdlMessage& message, void* to) {
  if (message.header.bytes > window_bytes_) return false;
  Batch batch(at_.node());
  if (message.header.bytes) batch.read(word(kDdlWindow), to, message.header.bytes);
  const int i = batch.load(word(kDdlSequence));
  run(batch);
  return batch.op(i).old == message.sequence;
}

uint64_t DdlChannel::acknowledged() { return load(cell(self_, offsetof(DdlCell, ack))) >> 1; }

void DdlChannel::acknowledge(uint64_t sequence, bool ok, std::string_view text) {
  DdlCell reply{};
  reply.bytes = uint32_t(std::min<size_t>(text.size(), kDdlReplyBytes));
  std::copy_n(text.data(), reply.bytes, reply.text);
  const uint64_t before = load(cell(self_, offsetof(DdlCell, ack)));
  if (before >> 1 >= sequence) return;
  Batch batch(at_.node());
  constexpr uint32_t kFrom = offsetof(DdlCell, bytes);
  batch.write(cell(self_, kFrom), reinterpret_cast<const char*>(&reply) + kFrom, sizeof reply - kFrom);
  batch.cas(cell(self_, offsetof(DdlCell, ack)), before, sequence << 1 | !ok);
  run(batch);
}

PageId DdlChannel::log_root() {
  const uint64_t raw = load(word(kDdlLogRoot));
  return raw ? PageId{raw - 1} : PageId{};
}

bool DdlChannel::set_log_root(PageId root) {
  Batch batch(at_.node());
  const int i = batch.cas(word(kDdlLogRoot), 0, root.raw + 1);
  run(batch);
  return batch.cas_succeeded(i);
}

}  // namespace engine
