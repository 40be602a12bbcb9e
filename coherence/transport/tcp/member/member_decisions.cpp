#include "coherence/transport/tcp/member/member_decisions.hpp"

namespace coherence::tcp {

MemberDecisions::ComeTo MemberDecisions::take(NodeId sayer, uint64_t incarnation, const SayingsRecord& says) noexcept {
  const NodeInfo info = changes_.info(sayer);
  ComeTo come_to;
  if (!info.serves() || info.incarnation != incarnation) return come_to;
  const uint64_t view = changes_.view();
  come_to.counts = true;
  come_to.leaves = says.leaves && info.state == MemberState::kLive;
  if (come_to.leaves) changes_.begin_leaving(sayer);
  come_to.fences = says.fences && !changes_.fenced();
  if (come_to.fences) changes_.fence(says.fence_reason);
  for (uint32_t n = 0; n < nodes_max_; n++) take_of(sayer, NodeId{uint8_t(n)}, says);
  come_to.repaired = advance_repairs();
  come_to.changed = come_to.leaves || come_to.fences || changes_.view() != view;
  return come_to;
}

void MemberDecisions::take_of(NodeId sayer, NodeId dead, const SayingsRecord& sayings) noexcept {
  const NodeInfo info = changes_.info(dead);
  if (!info.dead()) return;
  const auto says = [&](Said what) { return sayings.said[uint8_t(what)][dead.value] == info.incarnation; };
  if (says(Said::kRecorded) && changes_.unrecorded().has(dead)) changes_.recorded(dead, info.incarnation);
  if (says(Said::kQuiescent) && info.state == MemberState::kDead) changes_.says_quiescent(sayer, dead);
  if (says(Said::kSwept)) changes_.swept(dead, info.incarnation);
  if (says(Said::kDrained) && changes_.info(dead).state == MemberState::kSwept) changes_.says_drained(sayer, dead);
}

// What survivors have said may be all that is needed: since the last one said it, or since another one is dead, too.
NodeSet MemberDecisions::advance_repairs() noexcept {
  NodeSet repaired;
  if (!changes_.table().repairs_deaths() || !changes_.some_serve()) return repaired;
  for (uint32_t n = 0; n < nodes_max_; n++) {
    const NodeId dead{uint8_t(n)};
    if (changes_.repairable_is_due(dead)) changes_.repairable(dead);
    if (changes_.info(dead).state != MemberState::kSwept || !changes_.all_drained(dead)) continue;
    changes_.forget(dead);
    repaired = repaired.with(dead);
  }
  return repaired;
}

bool MemberDecisions::bury(NodeId node, NodeSet* repaired) noexcept {
  const NodeInfo info = changes_.info(node);
  if (!changes_.died(node)) return false;
  if (!changes_.table().repairs_deaths()) {
    Problem reason;
    reason.write("node %u (incarnation %llu, pid %d) ended without leaving the pool", unsigned{node.value},
                 static_cast<unsigned long long>(info.incarnation), info.pid);
    changes_.fence(reason.text);
  }
  *repaired = advance_repairs();
  return true;
}

Status MemberDecisions::may_reserve(NodeId id, const char* pool, Problem* problem) const {
  const NodeInfo info = changes_.info(id);
  if (changes_.fenced())
    return problem->set(Errc::kFenced, "pool %s was not closed cleanly: %s", pool, changes_.fence_reason());
  if (info.dead()) return problem->set(Errc::kUnrepaired, "node %d has died, and is not repaired yet", id.value);
  if (info.serves()) return problem->set(Errc::kBusy, "node %d is in use by process %d", id.value, info.pid);
  return {};
}

Status MemberDecisions::may_withdraw(NodeId id, uint64_t incarnation, Problem* problem) const {
  if (changes_.fenced()) return problem->set(Errc::kFenced, "%s", changes_.fence_reason());
  const NodeInfo info = id.value < nodes_max_ ? changes_.info(id) : NodeInfo{};
  if (!info.serves() || info.incarnation != incarnation)
    return problem->set(Errc::kFenced, "incarnation %llu of node %d is not in the pool any more",
                        static_cast<unsigned long long>(incarnation), id.value);
  return {};
}

NodeSet MemberDecisions::withdraw(NodeId id) noexcept {
  changes_.withdraw(id);
  return advance_repairs();
}

void MemberDecisions::fill(uint64_t epoch, Table* table) const noexcept {
  const NodeTable& now = changes_.table();
  TableHead& head = table->head;
  head.epoch = epoch;
  head.repairable = now.repairable.load();
  head.recorded = now.recorded.load();
  head.nodes_max = nodes_max_;
  head.fenced = changes_.fenced();
  head.repairs_deaths = now.repairs_deaths();
  head.records_deaths = now.records_deaths.load() != 0;
  if (head.fenced) put_text(changes_.fence_reason(), head.fence_reason);
  for (uint32_t n = 0; n < nodes_max_; n++) {
    const NodeInfo info = changes_.info(NodeId{uint8_t(n)});
    table->node[n].state = uint32_t(info.state);
    table->node[n].pid = info.pid;
    table->node[n].incarnation = info.incarnation;
  }
}

}  // namespace coherence::tcp
