#include "extension/engine/waitgraph/wait_registry.hpp"

namespace engine {

using coherence::Batch;
using coherence::NodeId;
using coherence::Result;

// A node's place: 8 bytes of version, the head, the records from byte 64 on.
constexpr uint64_t kHeadAt = 8, kRecordsAt = 64;

WaitRegistry::WaitRegistry(coherence::Memory& memory, bufmgr::RegionSpan region, uint32_t nodes, NodeId self,
                           uint64_t incarnation)
    : memory_(memory), at_(region.at), self_(self), incarnation_(incarnation) {
  VERIFY(region.bytes >= 64 + nodes * (kRecordsAt + sizeof(WaitRecord)));
  stride_ = (region.bytes - 64) / nodes / 64 * 64;
  room_ = uint32_t((stride_ - kRecordsAt) / sizeof(WaitRecord));
}

Result<uint64_t> WaitRegistry::ask() {
  const auto before = memory_.faa(at_, 1);
  if (!before) return before.error();
  return *before + 1;
}

Result<uint64_t> WaitRegistry::asked() { return memory_.load(at_); }

void WaitRegistry::write(uint64_t ticket, std::span<const WaitRecord> records, uint32_t left_out) {
  const Head head{
      .ticket = ticket, .incarnation = incarnation_, .count = uint32_t(records.size()), .left_out = left_out};
  const coherence::PoolAddress at = version_of(self_);
  Batch batch(at.node());
  batch.faa(at, 1);
  batch.write(at + kHeadAt, &head, sizeof head);
  if (!records.empty()) batch.write(at + kRecordsAt, records.data(), uint32_t(records.size_bytes()));
  batch.faa(at, 1);
  (void)memory_.run(batch);  // a list that is not there is one that was not published
}

void WaitRegistry::publish(uint64_t ticket, std::span<const WaitRecord> records, uint32_t left_out) {
  VERIFY(records.size() <= room_);
  write(ticket, records, left_out);
}

void WaitRegistry::clear() {
  // A former process of the node may have ended in the middle of a publication.
  if (const auto version = memory_.load(version_of(self_)); version && (*version & 1))
    (void)memory_.faa(version_of(self_), 1);
  write(0, {}, 0);
}

bool WaitRegistry::read(NodeId node, uint64_t ticket, std::vector<WaitRecord>* records, uint32_t* left_out) {
  const coherence::PoolAddress at = version_of(node);
  Head head;
  Batch first(at.node());
  const int before = first.load(at);
  first.read(at + kHeadAt, &head, sizeof head);
  if (!memory_.run(first)) return false;
  const uint64_t version = first.op(before).old;
  if ((version & 1) || head.ticket < ticket || head.count > room_) return false;

  const size_t had = records->size();
  records->resize(had + head.count);
  Batch second(at.node());
  if (head.count > 0) second.read(at + kRecordsAt, records->data() + had, uint32_t(head.count * sizeof(WaitRecord)));
  const int after = second.load(at);
  if (!memory_.run(second) || second.op(after).old != version) {
    records->resize(had);
    return false;
  }
  for (size_t i = had; i < records->size(); ++i) {
    (*records)[i].node = node.value;
    (*records)[i].incarnation = head.incarnation;
  }
  if (left_out != nullptr) *left_out += head.left_out;
  return true;
}

}  // namespace engine
