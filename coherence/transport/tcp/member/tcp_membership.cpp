#include "coherence/transport/tcp/member/tcp_membership.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "coherence/member/arena.hpp"
#include "coherence/region/pool_header.hpp"

namespace coherence::tcp {

// Here at once; the others learn of it from memory node 0.
void TcpMembership::fence(const char* reason) noexcept {
  of_.mirror.fence(reason);
  of_.sayings.fences(reason);
  of_.worker_wakeup.signal();
}

void TcpMembership::cut_off(const char* reason) noexcept {
  if (!repairs_deaths()) return fence(reason);
  of_.mirror.cut_off(reason);
}

// That this node lives is what its link says.
bool TcpMembership::watch(uint64_t now_ns) noexcept {
  bool some = false;
  if (worker_began_) (void)of_.mirror.keep_lease(now_ns);
  for (uint32_t n = 0; n < nodes_max(); n++) {
    const NodeInfo now = info(NodeId{uint8_t(n)});
    if (!now.dead() || dead_seen_[n] == now.incarnation) continue;
    dead_seen_[n] = now.incarnation;
    some = true;
  }
  return some;
}

// --- dead nodes: what was said is said, and memory node 0 shows what it has made of it

void TcpMembership::say(Said what, NodeId of, uint64_t incarnation) noexcept {
  if (of_.sayings.say(what, of, incarnation)) of_.worker_wakeup.signal();
}

bool TcpMembership::recorded(NodeId dead, uint64_t incarnation) noexcept {
  const NodeInfo now = info(dead);
  if (now.state != MemberState::kDead || now.incarnation != incarnation || !unrecorded().has(dead)) return true;
  say(Said::kRecorded, dead, incarnation);
  return false;
}

bool TcpMembership::quiesced(NodeId dead) noexcept {
  const NodeInfo now = info(dead);
  if (!repairs_deaths() || now.state != MemberState::kDead || repairable().has(dead)) return true;
  say(Said::kQuiescent, dead, now.incarnation);
  return false;
}

bool TcpMembership::swept(NodeId dead, uint64_t incarnation) noexcept {
  const NodeInfo now = info(dead);
  if (now.state != MemberState::kDead || now.incarnation != incarnation || !repairable().has(dead)) return true;
  say(Said::kSwept, dead, incarnation);
  return false;
}

bool TcpMembership::drained(NodeId dead) noexcept {
  const NodeInfo now = info(dead);
  if (now.state != MemberState::kSwept) return true;
  say(Said::kDrained, dead, now.incarnation);
  return false;
}

// --- joining and leaving

Status TcpMembership::call(const CallFrame& call, uint64_t* value, Problem* problem) {
  const Status done = of_.tool.call(call, value, problem);
  const Table* const table = of_.tool.table();
  if (table != nullptr && !worker_began_) (void)of_.mirror.take(*table);  // tcp.mirror-has-one-writer
  return done;
}

Status TcpMembership::begin_change(Patience patience, Problem* problem) {
  const Status begun = call({.call = Call::kBeginChange, .tries = patience == Patience::kTry}, nullptr, problem);
  changes_ = begun ? getpid() : 0;
  if (!begun && begun.error() != Errc::kBusy) of_.tool.close();
  return begun;
}

// Whatever comes of the call: the change ends with the link (tcp.change-of-one-tool).  It is none of a child's that was
// forked meanwhile.
void TcpMembership::end_change() noexcept {
  if (changes_ != getpid()) return;
  changes_ = 0;
  Problem ignored;
  (void)call({.call = Call::kEndChange}, nullptr, &ignored);
  of_.tool.close();
}

NodeSet TcpMembership::all_dead() noexcept {
  Problem ignored;
  NodeSet dead;
  return call({.call = Call::kAllDead}, &dead.bits, &ignored) ? dead : NodeSet{};
}

// If memory node 0 does not hear it they are dead still, and are repaired again.
void TcpMembership::forget(NodeSet dead) noexcept {
  for (NodeSet left = dead; !left.empty(); left = left.without(left.first()))
    unlink_node_files(pool_, left.first(), info(left.first()).incarnation);
  Problem ignored;
  (void)call({.call = Call::kForget, .nodes = dead.bits}, nullptr, &ignored);
}

// What the former incarnation left on this machine nobody uses any more.
Result<uint64_t> TcpMembership::reserve(NodeId id, Problem* problem) {
  if (id.value >= nodes_max())
    return problem->set(Errc::kNotFound, "the pool has room for nodes 0 to %u, not for %d", nodes_max() - 1, id.value);
  uint64_t incarnation = 0;
  GCL_TRY(call({.call = Call::kReserve, .node = id.value}, &incarnation, problem));
  id_ = id;
  incarnation_ = incarnation;
  if (const uint64_t former = info(id).incarnation; former != 0) unlink_node_files(pool_, id, former);
  return incarnation;
}

Status TcpMembership::publish(int arena, Problem* problem) {
  if (flock(arena, LOCK_EX | LOCK_NB) != 0)
    return problem->set(Errc::kSystem, "cannot lock the arena of node %d: %s", id_.value, strerror(errno));
  arena_ = arena;
  worker_began_ = true;
  GCL_TRY(of_.worker.start(id_, incarnation_, problem));
  CallFrame frame{.call = Call::kPublish,
                  .node = id_.value,
                  .incarnation = incarnation_,
                  .pid = getpid(),
                  .protocol = kProtocolVersion};
  put_text(of_.worker.listens_at(), frame.listens_at);
  const Status published = call(frame, nullptr, problem);
  if (!published) of_.worker.stop();
  return published;
}

Result<bool> TcpMembership::withdraw(Problem* problem) {
  if (fence_word().load(std::memory_order_acquire) != 0)  // pairs with Mirror::fence()
    return problem->set(Errc::kFenced, "%s", fence_reason());
  uint64_t empty = 0;
  GCL_TRY(call({.call = Call::kWithdraw, .node = id_.value, .incarnation = incarnation_}, &empty, problem));
  of_.worker.stop();
  return empty != 0;
}

Status TcpMembership::close(Problem* problem) { return call({.call = Call::kClose}, nullptr, problem); }

void TcpMembership::begin_leaving() noexcept {
  of_.sayings.leaves();
  of_.worker_wakeup.signal();
}

void TcpMembership::give_up() noexcept {
  (void)flock(arena_, LOCK_UN);
  of_.worker.stop();
}

}  // namespace coherence::tcp
