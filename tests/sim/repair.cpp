// What the layers above coherence do after a node's death: redo, and the sweep.
#include <algorithm>
#include <cstring>

#include "cluster.hpp"
#include "tests/support/pool_bytes.hpp"

namespace sim {
// A page that its owner was writing back has the newest values in some places, and its header's line is the last.
Result<bool> Redo::repair(PageId id, std::byte* page, NodeSet dead, Memory&, Problem*) noexcept {
  uint64_t value, newest = 0;
  memcpy(&value, page, sizeof value);
  if (crashes_in_repair_-- > 0) scheduler()->crash_soon(scheduler()->node(), scheduler()->random().between(1, 6));
  if (mutation == Mutation::kRedoForgotten) return false;
  if (mutation == Mutation::kOneRedo) dead = NodeSet::of(dead.first());
  for (; !dead.empty(); dead = dead.without(dead.first()))
    newest = std::max(newest, newest_[dead.first().value][size_t(Directory::index_of(id))]);
  if (newest <= value) return false;
  for (const uint32_t at : kWordAt) memcpy(page + at, &newest, sizeof newest);
  return true;
}

bool Cluster::repaired() const {
  for (int n = 0; n < options_.nodes; n++)
    if (const Member& m = *members_[size_t(n)]; m.coming || (crashed(n) && (m.awaited || !withdrawn(n)))) return false;
  return true;
}

// What the system does for dead processes.  A death is certain when the node's verbs are over, too
// (repair.death-is-over).
void Cluster::died(Member& m) {
  const int node = m.id.value;
  deaths_.nodes++;
  probe_.forget(m.id);
  if (tracing) trace("node %d dies", node);
  bool repairs = false;
  for (uint32_t i = 0; i < m.frames; i++) {
    const LineOp op = fields(m.node->line(i)).state.op;
    repairs |= op == LineOp::kTakeReadPosted || op == LineOp::kTakeWritePosted || op == LineOp::kRepairedPosted;
  }
  deaths_.in_repair += repairs;
  if (m.coming) m.awaited = m.coming = false;
  if (mutation == Mutation::kNobodyWatches) return;
  if (!options_.survives && !options_.far_members) return free_locks_of(node);
  scheduler()->spawn(Scheduler::kNobody, [this, node] {
    scheduler()->sleep(kVerbsNsMax);
    if (options_.survives) oracle_.died(node);
    free_locks_of(node);
    if (options_.far_members) far_.died(NodeId{uint8_t(node)});
  });
}

// As soon as its name is free.
void Cluster::rejoin(Member& m) {
  const int number = m.id.value;
  while (!closing_ && !(crashed(number) && withdrawn(number))) scheduler()->sleep(kMs);
  if (closing_) return;
  scheduler()->revive(number);
  if (!options_.far_members) return come_again(m);
  m.coming = true;
  far_.comes_again(m.id);
  if (options_.dies_again > 0 && number == options_.crash_node) scheduler()->crash_soon(number, options_.dies_again);
  scheduler()->spawn(number, [this, &m] { come_again(m); });  // a far join takes its time
}

void Cluster::come_again(Member& m) {
  const bool in = join(m);
  m.awaited = m.coming = false;
  if (!in) return;
  far_.joined_again(m.id);
  deaths_.rejoined++;
  if (tracing) trace("node %d joins again", m.id.value);
  start(m);
}

// One of several survivors; each of them may die in the middle of it.
void Cluster::sweep(Member& m) {
  while (!closing_ && m.serving) {
    scheduler()->sleep(scheduler()->random().between(50 * kUs, 500 * kUs));
    const NodeSet dead = m.left || m.leaving || fenced() ? NodeSet() : m.node->repairable();
    if (dead.empty()) continue;
    m.sweeping = true;
    {
      Session session(*m.node, SessionId{uint16_t(options_.threads + 1)}, nullptr);
      const uint64_t incarnation = m.node->info(dead.first()).incarnation;
      if (sweep(m, session, dead.first())) (void)m.node->swept(dead.first(), incarnation);
    }
    m.sweeping = false;
  }
}

// As drop_dead(), but it does not look whether the node is dead still, and no draining waits for it.
void Cluster::drop_late(Session& session, PageId page, NodeId dead) {
  const PoolAddress at = pool_->latch_address(page);
  scheduler()->sleep(scheduler()->random().below(scheduler()->random().one_in(4) ? 40 * kMs : kUs));
  const auto word = session.memory().load(at);
  if (!word || !LatchWord{*word}.readers().has(dead)) return;
  (void)session.memory().cas(at, *word, LatchWord{*word}.plus(LatchWord::drop_reader(dead)).raw);
}

// repair.swept-means-written
bool Cluster::sweep(Member& m, Session& session, NodeId dead) {
  bool done = true;
  for (int page = 0; page < options_.pages; page++) {
    if (!in_pool(session, page, dead)) {
      done = false;
      Line* const line = m.line(session, page);
      if (line == nullptr || !session.lock_shared(*line, Directory::page(page))) continue;
      (void)session.drop_dead(Directory::page(page), dead, line);
      session.unlock_shared(*line);
      (void)session.write_back(*line, Directory::page(page));
    }
    if (mutation == Mutation::kBitDroppedLate) drop_late(session, Directory::page(page), dead);
    const auto named = session.drop_dead(Directory::page(page), dead);
    if (!named) return false;
    done &= *named == Session::Named::kNot;
  }
  return done;
}

bool Cluster::in_pool(Session& session, int page, NodeId dead) {
  const auto word = session.memory().load(pool_->latch_address(Directory::page(page)));
  if (!word || LatchWord{*word}.owner() == dead) return false;
  if (mutation == Mutation::kSweptUnwritten) return true;
  uint64_t value;
  memcpy(&value, gcl_test::pool_bytes(*pool_, Directory::page(page)), sizeof value);
  return value >= redo_.newest(dead, page);
}

}  // namespace sim
