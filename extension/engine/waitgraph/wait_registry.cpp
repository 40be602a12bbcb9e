#include "extension/engine/waitgraph/wait_registry.hpp"

#include <algorithm>
#include <utility>

namespace engine {

using coherence::Batch;
using coherence::NodeId;
using coherence::Result;

// A node's place: the count of its publications, the heads of two lists, and from byte 64 on the records of both.
constexpr uint64_t kHeadsAt = 8, kRecordsAt = 64;

WaitRegistry::WaitRegistry(coherence::Memory& memory, bufmgr::RegionSpan region, uint32_t nodes, NodeId self,
                           uint64_t incarnation)
    : memory_(memory), at_(region.at), self_(self), incarnation_(incarnation), nodes_(nodes) {
  static_assert(kHeadsAt + 2 * sizeof(Head) <= kRecordsAt);
  VERIFY(region.bytes >= kPlacesAt + nodes * (kRecordsAt + 2 * sizeof(WaitRecord)));
  stride_ = (region.bytes - kPlacesAt) / nodes / 64 * 64;
  room_ = uint32_t((stride_ - kRecordsAt) / (2 * sizeof(WaitRecord)));
}

uint64_t WaitRegistry::list_at(uint64_t publication) const {
  return kRecordsAt + publication % 2 * room_ * sizeof(WaitRecord);
}

Result<uint64_t> WaitRegistry::ask() {
  Batch batch(at_.node());
  const int ticket = batch.faa(at_, 1);
  batch.faa(at_ + (kAskersAt + self_.value * 8u), 1);  // waitgraph.answers-wake: behind the ticket
  GCL_TRY(memory_.run(batch));
  return batch.op(ticket).old + 1;
}

Result<WaitRegistry::Asked> WaitRegistry::asked() {
  uint64_t taken[coherence::kNodesMax];
  Batch batch(at_.node());
  batch.read(at_ + kAskersAt, taken, nodes_ * 8);
  const int ticket = batch.load(at_);  // waitgraph.answers-wake: behind the words
  GCL_TRY(memory_.run(batch));
  Asked asked{.ticket = batch.op(ticket).old};
  for (uint32_t i = 0; i < nodes_; ++i)
    if (std::exchange(taken_[i], taken[i]) != taken[i]) asked.by.bits |= coherence::NodeSet::of({uint8_t(i)}).bits;
  return asked;
}

void WaitRegistry::publish(uint64_t ticket, std::span<const WaitRecord> records, uint32_t left_out) {
  VERIFY(records.size() <= room_);
  const Head head{
      .ticket = ticket, .incarnation = incarnation_, .count = uint32_t(records.size()), .left_out = left_out};
  const coherence::PoolAddress at = place_of(self_);
  const auto published = memory_.load(at);
  if (!published) return;  // a list that is not there is one that was not published
  const uint64_t next = *published + 1;
  Batch batch(at.node());
  batch.write(at + (kHeadsAt + next % 2 * sizeof head), &head, sizeof head);
  if (!records.empty()) batch.write(at + list_at(next), records.data(), uint32_t(records.size_bytes()));
  batch.faa(at, 1);
  (void)memory_.run(batch);
}

void WaitRegistry::clear() { publish(0, {}, 0); }

bool WaitRegistry::read(NodeId node, uint64_t ticket, std::vector<WaitRecord>* records, uint32_t* left_out) {
  const coherence::PoolAddress at = place_of(node);
  const size_t had = records->size();
  for (;;) {
    Head heads[2];
    Batch first(at.node());
    const int before = first.load(at);
    first.read(at + kHeadsAt, heads, sizeof heads);
    if (!memory_.run(first)) return false;
    const uint64_t publication = first.op(before).old;
    const Head& head = heads[publication % 2];
    if (head.ticket < ticket) return false;

    const uint32_t count = std::min(head.count, room_);  // more only where the head is not whole
    records->resize(had + count);
    Batch second(at.node());
    if (count > 0) second.read(at + list_at(publication), records->data() + had, uint32_t(count * sizeof(WaitRecord)));
    const int after = second.load(at);
    if (!memory_.run(second)) {
      records->resize(had);
      return false;
    }
    if (second.op(after).old != publication) continue;
    for (size_t i = had; i < records->size(); ++i) {
      (*records)[i].node = node.value;
      (*records)[i].incarnation = head.incarnation;
    }
    if (left_out != nullptr) *left_out += head.left_out;
    return true;
  }
}

}  // namespace engine
