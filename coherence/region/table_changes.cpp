#include "coherence/region/table_changes.hpp"

#include <cstdio>

namespace coherence {

NodeInfo TableChanges::info(NodeId n) const noexcept {
  const NodeEntry& e = table_.node[n.value];
  NodeInfo seen;
  do {                                                                 // region.state-of-incarnation
    seen.state = e.state.load(std::memory_order_acquire);              // pairs with change()
    seen.incarnation = e.incarnation.load(std::memory_order_acquire);  // pairs with publish()
    seen.pid = e.pid.load(std::memory_order_relaxed);
  } while (e.state.load(std::memory_order_acquire) != seen.state ||
           e.incarnation.load(std::memory_order_relaxed) != seen.incarnation);
  return seen;
}

NodeSet TableChanges::unrecorded() const noexcept {
  NodeSet nodes;
  if (table_.records_deaths.load(std::memory_order_relaxed) == 0) return nodes;
  for (uint32_t n = 0; n < nodes_max_; n++)
    // The state first: of a later incarnation it says that what was recorded of a former one is forgotten.
    if (const NodeId node{uint8_t(n)};
        info(node).state == MemberState::kDead &&
        !NodeSet{table_.recorded.load(std::memory_order_acquire)}.has(node))  // pairs with recorded()
      nodes = nodes.with(node);
  return nodes;
}

NodeSet TableChanges::dead() const noexcept {
  NodeSet nodes;
  for (uint32_t n = 0; n < nodes_max_; n++)
    if (const NodeId node{uint8_t(n)}; info(node).dead()) nodes = nodes.with(node);
  return nodes;
}

bool TableChanges::some_serve() const noexcept {
  for (uint32_t n = 0; n < nodes_max_; n++)
    if (info(NodeId{uint8_t(n)}).serves()) return true;
  return false;
}

bool TableChanges::empty() const noexcept {
  for (uint32_t n = 0; n < nodes_max_; n++)
    if (info(NodeId{uint8_t(n)}).state != MemberState::kAbsent) return false;
  return true;
}

const char* TableChanges::fence_reason() const noexcept {
  const bool written = table_.reason_state.load(std::memory_order_acquire) == kReasonWritten;  // pairs with fence()
  return written ? table_.fence_reason : "a node ended without leaving the pool";
}

bool TableChanges::all_say(std::atomic<uint64_t> NodeEntry::*what, NodeId dead) const noexcept {
  for (uint32_t n = 0; n < nodes_max_; n++)
    if (const NodeId node{uint8_t(n)}; info(node).serves() && !NodeSet{(table_.node[n].*what).load()}.has(dead))
      return false;
  return true;
}

bool TableChanges::repairable_is_due(NodeId dead) const noexcept {
  return info(dead).state == MemberState::kDead && !repairable().has(dead) && !unrecorded().has(dead) &&
         all_say(&NodeEntry::quiesced, dead);
}

bool TableChanges::all_drained(NodeId dead) const noexcept { return all_say(&NodeEntry::drained, dead); }

void TableChanges::says_quiescent(NodeId node, NodeId dead) noexcept {
  table_.node[node.value].quiesced.fetch_or(NodeSet::of(dead).bits);
}

void TableChanges::says_drained(NodeId node, NodeId dead) noexcept {
  table_.node[node.value].drained.fetch_or(NodeSet::of(dead).bits);
}

void TableChanges::begin_leaving(NodeId node) noexcept {
  table_.node[node.value].state.store(MemberState::kLeaving, std::memory_order_release);
}

void TableChanges::fence(const char* reason) noexcept {
  uint32_t nobody = kReasonNone;
  if (table_.reason_state.compare_exchange_strong(nobody, kReasonClaimed, std::memory_order_acq_rel)) {
    snprintf(table_.fence_reason, sizeof table_.fence_reason, "%s", reason);
    table_.reason_state.store(kReasonWritten, std::memory_order_release);  // pairs with fence_reason()
  }
  table_.fence.store(1, std::memory_order_release);  // pairs with Node::fenced()
}

void TableChanges::recorded(NodeId dead, uint64_t incarnation) noexcept {
  const NodeInfo now = info(dead);
  if (now.state != MemberState::kDead || now.incarnation != incarnation) return;
  table_.recorded.fetch_or(NodeSet::of(dead).bits);
  table_.view.fetch_add(2, std::memory_order_seq_cst);  // workers look again
}

void TableChanges::repairable(NodeId dead) noexcept {
  table_.repairable.fetch_or(NodeSet::of(dead).bits);
  table_.view.fetch_add(2, std::memory_order_seq_cst);  // workers look again
}

void TableChanges::swept(NodeId dead, uint64_t incarnation) noexcept {
  const NodeInfo now = info(dead);
  if (now.state != MemberState::kDead || now.incarnation != incarnation || !repairable().has(dead)) return;
  table_.repairable.fetch_and(~NodeSet::of(dead).bits);
  change(dead, MemberState::kSwept);
}

void TableChanges::forget(NodeId dead) noexcept {
  table_.repairable.fetch_and(~NodeSet::of(dead).bits);
  change(dead, MemberState::kAbsent);
}

uint64_t TableChanges::reserve() noexcept { return table_.next_incarnation.fetch_add(1) + 1; }

void TableChanges::publish(NodeId id, uint64_t incarnation, const Joiner& who) noexcept {
  NodeEntry& entry = table_.node[id.value];
  entry.pid.store(who.pid, std::memory_order_relaxed);
  entry.pid_start.store(who.pid_start, std::memory_order_relaxed);
  entry.pid_namespace.store(who.pid_namespace, std::memory_order_relaxed);
  entry.heartbeat_ns.store(who.now_ns, std::memory_order_relaxed);
  entry.by_links.store(who.by_links, std::memory_order_relaxed);
  entry.incarnation.store(incarnation, std::memory_order_release);  // pairs with info()
  // This node has nothing of those that are dead, and what others said is about its former incarnation.
  for (uint32_t n = 0; n < nodes_max_; n++) {
    table_.node[n].quiesced.fetch_and(~NodeSet::of(id).bits);
    table_.node[n].drained.fetch_and(~NodeSet::of(id).bits);
  }
  table_.recorded.fetch_and(~NodeSet::of(id).bits);
  entry.quiesced.store(dead().bits);
  entry.drained.store(0);
  change(id, MemberState::kLive);
}

void TableChanges::withdraw(NodeId id) noexcept { change(id, MemberState::kAbsent); }

bool TableChanges::died(NodeId node) noexcept {
  NodeEntry& entry = table_.node[node.value];
  MemberState state = entry.state.load(std::memory_order_acquire);  // pairs with change()
  bool counts = false;
  table_.view.fetch_add(1);
  while (!counts && (state == MemberState::kLive || state == MemberState::kLeaving))
    counts = entry.state.compare_exchange_weak(state, MemberState::kDead, std::memory_order_acq_rel);
  table_.view.fetch_add(1, std::memory_order_seq_cst);
  return counts;
}

void TableChanges::change(NodeId node, MemberState to) noexcept {
  table_.view.fetch_add(1);
  table_.node[node.value].state.store(to, std::memory_order_release);  // pairs with info()
  table_.view.fetch_add(1, std::memory_order_seq_cst);                 // those that looked before look again
}

}  // namespace coherence
