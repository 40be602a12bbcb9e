#include "recovery/ring_repair.hpp"

#include "coherence/base/os.hpp"
#include "recovery/merge.hpp"

namespace recovery {

using coherence::MemberState;
using coherence::Memory;
using coherence::NodeId;
using coherence::NodeSet;
using coherence::PageId;
using coherence::Problem;
using coherence::Result;

bool RingRepair::is_dead(NodeId node, uint64_t incarnation) const noexcept {
  const auto now = pool_.coherence_node().info(node);
  return now.state == MemberState::kDead && now.incarnation == incarnation;
}

void RingRepair::forget_absent() noexcept {
  coherence::SpinGuard hold(lock_);
  forget_absent_locked();
}

void RingRepair::forget_absent_locked() noexcept {
  for (uint32_t n = 0; n < pool_.nodes_max(); ++n)
    if (Ring& ring = ring_[n]; ring.index && !is_dead({uint8_t(n)}, ring.incarnation)) ring.index.reset();
}

// Null: the node is not dead, or the pool has all of its pages already (repair.swept-means-written).
Result<const RingIndex*> RingRepair::index_of(NodeId node, Memory& memory, Problem* problem) noexcept {
  const auto now = pool_.coherence_node().info(node);
  if (now.state != MemberState::kDead) return nullptr;
  Ring& ring = ring_[node.value];
  if (!ring.index || ring.incarnation != now.incarnation) {
    ring.index.reset();
    const bufmgr::RegionSpan at = pool_.ring_of(node);
    Problem why;
    auto read = RingIndex::read(memory, at.at, at.bytes, now.incarnation, &why);
    // Its next incarnation may have written there meanwhile.
    if (!is_dead(node, now.incarnation)) return nullptr;
    if (!read) return problem->set(read.error(), "node %d: %s", int(node.value), why.text);
    ring.index = read.take();
    ring.incarnation = now.incarnation;
  }
  return ring.index.get();
}

Result<bool> RingRepair::repair(PageId page, std::byte* image, NodeSet dead, Memory& memory,
                                Problem* problem) noexcept {
  coherence::SpinGuard hold(lock_);
  forget_absent_locked();
  Merge merge;
  for (; !dead.empty(); dead = dead.without(dead.first())) {
    const auto index = index_of(dead.first(), memory, problem);
    if (!index) return index.error();
    if (*index != nullptr) merge.add(**index, (*index)->of(page));
  }
  return merge.apply_to(image, problem);
}

Result<size_t> RingRepair::pages(NodeId dead, uint64_t incarnation, PageId from, std::span<PageVersion> to,
                                 Memory& memory, Problem* problem) noexcept {
  coherence::SpinGuard hold(lock_);
  if (!is_dead(dead, incarnation)) return size_t{0};
  const auto index = index_of(dead, memory, problem);
  if (!index) return index.error();
  size_t count = 0;
  if (*index == nullptr || ring_[dead.value].incarnation != incarnation) return count;
  for (const RingIndex::Change& change : (*index)->from(from)) {
    const bool again = count > 0 && to[count - 1].page == change.page;
    if (!again && count == to.size()) break;
    if (!again) ++count;
    to[count - 1] = {change.page, change.version};  // the newest comes last
  }
  return count;
}

}  // namespace recovery
