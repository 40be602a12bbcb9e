// Nodes that died, this one's former incarnation included: what they left is ended (leftovers.hpp).
#include <optional>

#include "coherence/member/node.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

constexpr uint32_t kLockPauseMs = 10;

Result<Leftovers::Ended> TxnSystem::end_dead_node(NodeId dead) {
  coherence::Node& node = pool_.coherence_node();
  const coherence::NodeInfo meant = node.info(dead);
  const auto still_dead = [&] {
    const coherence::NodeInfo now = node.info(dead);
    return now.dead() && now.incarnation == meant.incarnation;
  };
  if (pool_.fenced()) return Errc::kFenced;
  // Where the death fences the pool, a moment later, a session that waits is to learn of that.
  if (!node.repairs_deaths() || node.unrecorded().has(dead)) return Leftovers::Ended{};  // repair.recorded-first
  auto ended = Leftovers(session_.memory(), words_, dead).end(still_dead);
  if (!ended) return ended;
  if (!ended->watchers.empty()) waker_.wake(ended->watchers);
  if (ended->committed > 0) rouse();  // the clock has moved
  return ended;
}

Result<std::vector<Leftovers::Verdict>> TxnSystem::verdicts_on(NodeId dead) {
  return Leftovers(session_.memory(), words_, dead).verdicts();
}

Status TxnSystem::end_dead_nodes() {
  coherence::Node& node = pool_.coherence_node();
  const uint64_t view = node.view();
  if (view == deaths_view_) return {};
  for (uint32_t n = 0; n < words_.nodes(); ++n) {
    const NodeId other{uint8_t(n)};
    if (other == node_ || !node.info(other).dead()) continue;
    if (const auto ended = end_dead_node(other); !ended) return ended.error();
  }
  deaths_view_ = view;
  return {};
}

Result<std::vector<InDoubt>> TxnSystem::in_doubt() {
  std::vector<InDoubt> all;
  for (uint32_t n = 0; n < words_.nodes(); ++n) {
    const NodeId other{uint8_t(n)};
    if (pool_.coherence_node().info(other).serves()) continue;
    if (pool_.fenced()) return Errc::kFenced;
    const auto some = Leftovers(session_.memory(), words_, other).in_doubt();
    if (!some) return some.error();
    all.insert(all.end(), some->begin(), some->end());
  }
  return all;
}

// The node does not join meanwhile.
Result<bool> TxnSystem::decide_in_doubt(TxnId id, bool commit, const Leftovers::Record& record) {
  if (pool_.fenced()) return Errc::kFenced;
  coherence::Node& here = pool_.coherence_node();
  std::optional<coherence::Node::Unchanged> unchanged;
  for (;;) {
    const Status locked = here.keep_members(&unchanged);
    if (locked) break;
    if (locked.error() != Errc::kBusy) return locked.error();
    GCL_TRY(waiter_.pause(kLockPauseMs));
  }
  const NodeId away = id.node();
  if (away.value >= words_.nodes() || here.info(away).serves()) return Errc::kNotFound;
  const auto decided = Leftovers(session_.memory(), words_, away).decide(id, commit, record);
  if (!decided) return decided.error();
  unchanged.reset();
  waker_.wake(decided->watchers.with(node_));
  rouse();  // the clock has moved
  return decided->committed;
}

// No process of it is left, and no session of this one works yet.
Status TxnSystem::resolve_former_incarnation(HostCommits* host) {
  if (pool_.fenced()) return Errc::kFenced;
  const auto ended = Leftovers(session_.memory(), words_, node_).end([] { return true; }, host);
  if (!ended) return ended.error();
  if (!ended->in_doubt.empty()) return Errc::kCorrupt;
  if (host != nullptr) GCL_TRY(Leftovers(session_.memory(), words_, node_).tell(*host));
  if (!ended->watchers.empty()) waker_.wake(ended->watchers);
  return {};
}

}  // namespace engine
