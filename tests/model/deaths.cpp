// A node dies, is fenced, and what it owned is repaired.
#include "explorer.hpp"

namespace coherence::model {

// Before what the dead node owned is repaired, a node that it granted early makes its word true: else that node would
// go on with what is free for others.
void Explorer::repair_for_dead(State& s, int n) {
  if (v.no_settling) return;
  for (const int to : granted_by(s, n)) {
    NodeM& x = s.node[to];
    x.grant_in_flight = 0;
    const LatchWord w{s.word};
    if (s.reply[n][to].kind) continue;  // it was never told
    const bool holds = w.has_holder() && w.holder() == id_of(n);
    if (x.msi == MsiState::kModified && holds) s.word += LatchWord::hand_over(id_of(n), id_of(to));
    if (x.msi != MsiState::kShared) continue;
    s.pool |= holds && s.node[n].fresh;
    if (holds) s.word += LatchWord::drop_holder(id_of(n));
    if (!w.readers().has(id_of(to))) s.word += LatchWord::add_reader(id_of(to));  // coherence.reader-joins-taker
  }
}

void Explorer::death(const State& s0, int n) {
  if (!s0.dead) {
    State s = s0;
    NodeM old = s.node[n];
    NodeM& d = s.node[n];
    s.dead = uint8_t(n + 1);
    d = NodeM{};
    d.grant_in_flight = old.grant_in_flight;
    d.sharers = old.sharers;
    if (old.op == LineOp::kDowngradePosted) d.op = old.op;  // whose bits its batch adds
    d.fresh = old.fresh | old.batch.write_new;              // its redo has them
    if (!old.batch.done) d.batch = old.batch;
    emit(s, kEnvironment, "dies");
    return;
  }
  NodeId id = id_of(n);
  if (!s0.fenced) {
    State s = s0;
    s.fenced = 1;
    if (!v.no_fence) s.node[n].batch = BatchM{};
    repair_for_dead(s, n);
    for (int j = 0; j < kNodes; j++) {
      s.request[n][j] = s.request[j][n] = 0;
      s.reply[n][j] = s.reply[j][n] = MessageM{};
      s.request_again[n][j] = s.request_again[j][n] = s.reply_again[n][j] = s.reply_again[j][n] = 0;
    }
    emit(s, kFence, "the dead node is fenced");
    return;
  }
  State s = s0;
  if (LatchWord w{s.word}; w.has_holder() && w.holder() == id) {
    s.pool |= s.node[n].fresh;
    s.word += LatchWord::drop_holder(id);
    emit(s, kRepair, "the dead holder is repaired");
  } else if (w.readers().has(id)) {
    s.word += LatchWord::drop_reader(id);
    emit(s, kRepair, "the dead reader is repaired");
  }
}

}  // namespace coherence::model
