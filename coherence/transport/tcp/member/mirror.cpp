#include "coherence/transport/tcp/member/mirror.hpp"

#include <algorithm>
#include <cstdio>

#include "coherence/base/problem.hpp"
#include "coherence/base/racy_copy.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/transport/tcp/member/patience.hpp"

namespace coherence::tcp {

Mirror& Mirror::at(void* memory) noexcept {
  VERIFY(uintptr_t(memory) % alignof(Mirror) == 0);
  return *static_cast<Mirror*>(memory);
}

PagePlaces Mirror::places(MemoryNodeId n) const noexcept {
  const MemoryNodeRecord& record = memory_node_[n.value];
  PagePlaces places;
  places.words_at = PoolAddress::at(n, record.words_at);
  places.pages_at = PoolAddress::at(n, record.pages_at);
  places.pages = record.pages;
  places.word_rows = PagePlaces::rows_for(record.pages);
  return places;
}

void Mirror::copy_memory_node_address(MemoryNodeId n, std::span<char, kListensAtBytes> to) const noexcept {
  racy_look(to.data(), memory_node_[n.value].address, to.size());
  to.back() = 0;
}

bool Mirror::address_of(NodeId node, uint64_t incarnation, char* to, size_t bytes) const noexcept {
  const Place& place = listens_at_[node.value];
  if (incarnation == 0 || place.incarnation.load(std::memory_order_acquire) != incarnation)
    return false;  // take_node()
  char text[kListensAtBytes];
  racy_look(text, place.text, sizeof text);
  if (place.incarnation.load(std::memory_order_relaxed) != incarnation || text[0] == 0) return false;
  snprintf(to, bytes, "%s", text);
  return true;
}

bool Mirror::take(const Table& table) noexcept {
  const TableHead& head = table.head;
  if (head.epoch <= epoch_.load(std::memory_order_relaxed)) return false;
  table_.view.fetch_add(1);
  nodes_max_.store(head.nodes_max, std::memory_order_relaxed);
  protocol_.store(head.protocol, std::memory_order_relaxed);
  patience_ms_.store(head.patience_ms, std::memory_order_relaxed);
  saves_.store(head.saves, std::memory_order_relaxed);
  table_.after_death.store(head.repairs_deaths ? AfterDeath::kRepair : AfterDeath::kFence, std::memory_order_relaxed);
  table_.records_deaths.store(head.records_deaths, std::memory_order_relaxed);
  for (uint32_t n = settled_memory_nodes(); n < std::min(memory_nodes(), head.memory_nodes); n++)
    racy_publish(memory_node_[n].address, table.memory_node[n].address, kListensAtBytes);
  for (uint32_t n = memory_nodes(); n < head.memory_nodes; n++) memory_node_[n] = table.memory_node[n];
  if (head.memory_nodes > memory_nodes()) memory_nodes_.store(head.memory_nodes, std::memory_order_release);
  settled_memory_nodes_.store(head.memory_nodes - head.young, std::memory_order_release);  // they are not fewer again
  table_.repairable.fetch_and(head.repairable);                                            // region.bits-before-state
  table_.recorded.fetch_and(head.recorded);
  for (uint32_t n = 0; n < head.nodes_max; n++) take_node(NodeId{uint8_t(n)}, table.node[n]);
  table_.recorded.fetch_or(head.recorded);
  table_.repairable.fetch_or(head.repairable);
  if (head.fenced) fence(head.fence_reason);
  epoch_.store(head.epoch, std::memory_order_release);  // pairs with known()
  table_.view.fetch_add(1, std::memory_order_seq_cst);  // pairs with TableChanges::view()
  return true;
}

void Mirror::take_node(NodeId node, const NodeRecord& record) noexcept {
  NodeEntry& entry = table_.node[node.value];
  Place& place = listens_at_[node.value];
  entry.pid.store(record.pid, std::memory_order_relaxed);
  if (entry.incarnation.load(std::memory_order_relaxed) != record.incarnation)
    entry.state.store(MemberState::kAbsent, std::memory_order_relaxed);    // region.state-of-incarnation
  entry.incarnation.store(record.incarnation, std::memory_order_release);  // pairs with TableChanges::info()
  if (place.incarnation.load(std::memory_order_relaxed) != record.incarnation) {
    place.incarnation.store(0, std::memory_order_relaxed);
    racy_publish(place.text, record.listens_at, sizeof place.text);
    place.incarnation.store(record.incarnation, std::memory_order_release);  // pairs with address_of()
  }
  entry.state.store(MemberState(record.state), std::memory_order_release);  // pairs with TableChanges::info()
}

bool Mirror::keep_lease(uint64_t now_ns) noexcept {
  const uint64_t at = lease_began();
  if (at == 0 || now_ns < at + lease_ns(patience_ms())) return true;
  Problem reason;
  reason.write("this node is cut off: memory node 0 has not answered for %.1f s", double(now_ns - at) / 1e9);
  cut_off(reason.text);
  return false;
}

}  // namespace coherence::tcp
