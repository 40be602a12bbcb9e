// Nodes die, each is fenced, and survivors repair what it had (recovery/design.md).
#include <bit>

#include "explorer.hpp"

namespace coherence::model {

NodeSet Explorer::repairable(const State& s) {
  NodeSet nodes;
  for (int n = 0; n < kNodes; n++)
    if (gone(s, n)) nodes = nodes.with(id_of(n));
  return nodes;
}

// Before what the dead node owned is repaired, a node that it granted early makes its word true
// (repair.quiesced-first): else that node would go on with what is free for others.
void Explorer::quiesce(State& s, int n) {
  if (v.no_quiesce) return;
  for (const int to : granted_by(s, n)) {
    NodeM& x = s.node[to];
    x.grant_in_flight = 0;
    const LatchWord w{s.word};
    if (s.dead >> to & 1) continue;
    if (s.reply[n][to].kind) continue;  // it was never told
    const bool holds = w.owner() == id_of(n);
    if (x.msi == MsiState::kModified && holds) s.word += LatchWord::hand_over(id_of(n), id_of(to));
    if (x.msi != MsiState::kShared) continue;
    s.pool |= x.fresh;
    if (!w.readers().has(id_of(to))) s.word += LatchWord::add_reader(id_of(to));  // coherence.reader-joins-taker
  }
}

// What a survivor adds to the page that it took over from `owner`: the redo of all that are known to be dead.
void Explorer::repair(State& s, int n, LatchWord taken) {
  for (int d = 0; d < kNodes && !v.no_redo; d++)
    if (known_dead(s, d) && s.node[d].redo && (!v.one_redo || taken.owner() == id_of(d))) s.node[n].fresh = 1;
}

void Explorer::death(const State& s0, int n) {
  State s = s0;
  NodeM& d = s.node[n];
  const auto bit = uint8_t(1 << n);
  if (!(s0.dead & bit)) {
    if (std::popcount(s0.dead) >= v.crashes) return;
    const NodeM old = d;
    s.dead |= bit;
    d = NodeM{};
    d.grant_in_flight = old.grant_in_flight;
    d.sharers = old.sharers;
    d.taken_from = old.taken_from;
    if (!old.batch.done) d.batch = old.batch;
    if (old.op == LineOp::kDowngradePosted) d.op = old.op;  // whose bits its batch adds
    d.msi = d.batch.post == Post::kTakeOver ? old.msi : MsiState::kInvalid;
    d.redo = old.changed;
    emit(s, kEnvironment, "dies");
    return;
  }
  if (!(s0.fenced & bit)) {
    s.fenced |= bit;
    // The dead node is repairable when all others are quiescent.  One that has died meanwhile says nothing: its own
    // death is known first (repair.quiesced-first, repair.all-dead-redo).
    s.fenced |= uint8_t(s.dead << 4);
    d.msi = MsiState::kInvalid;
    if (!v.no_fence) d.batch = BatchM{};
    quiesce(s, n);
    for (int j = 0; j < kNodes; j++) {
      s.request[n][j] = s.request[j][n] = 0;
      s.reply[n][j] = s.reply[j][n] = MessageM{};
      s.request_again[n][j] = s.request_again[j][n] = s.reply_again[n][j] = s.reply_again[j][n] = 0;
    }
    emit(s, uint8_t(kFence + n), "the dead node is fenced");
    return;
  }
  // The sweep.  What a dead node owns is taken over by a node that wants it: the sweep is one that wants to read.
  const LatchWord w{s.word};
  for (const NodeM& x : s.node)
    if (w.owner() == id_of(n) && x.msi == MsiState::kShared && x.op == LineOp::kIdle) {
      s.word += LatchWord::drop_owner(id_of(n));
      emit(s, uint8_t(kRepair + n), "the dead claimer's place is dropped");
      return;
    }
  if (w.readers().has(id_of(n))) {
    s.word += LatchWord::drop_reader(id_of(n));
    emit(s, uint8_t(kRepair + n), "the dead reader's bit is dropped");
  }
}

}  // namespace coherence::model
