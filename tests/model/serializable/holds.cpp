// Strict two-phase locking by holds, as extension/engine/serializable/rules.md has it.  A commit: keep the holds and
// set COMMITTING, take the timestamp, set the final status, let go.
#include <new>

#include "model.hpp"

namespace serializable_model {
namespace {

class Holds final : public Base {
 public:
  using Base::Base;

  void moves(const State& s, int t, void* to, Emit emit) const override {
    const Txn& x = s.txn[size_t(t)];
    if (x.over) return;
    State next = s;
    Txn& y = next.txn[size_t(t)];
    if (!x.begun) {
      begin(next, t);
      return emit(to, next, "begins");
    }
    if (x.helping) return help(next, t, to, emit);
    if (may_be_taken(s, t)) {
      State taken = s;
      taken.txn[size_t(t)].given_up = true;
      taken.txn[size_t(t)].doomed = has_written(s, t);
      emit(to, taken, "loses its holds");
    }
    if (!rules_.strict && x.step == 0 && x.done == program(t).count && !x.let_go && has_written(s, t)) {
      y.let_go = true;
      return emit(to, next, "lets go");
    }
    if (x.doomed && x.step == 0 && rules_.given_up_commits_nothing) {
      abort(next, t);
      return emit(to, next, "is refused");
    }
    if (x.done < program(t).count) return operate(next, t, to, emit);
    commit(next, t, to, emit);
  }

  uint8_t blockers(const State& s, int t) const override { return s.txn[size_t(t)].waits ? in_the_way(s, t) : 0; }

 private:
  static constexpr uint8_t bit(int t) { return uint8_t(1 << t); }
  bool by_snapshot(const State& s, int t) const { return program(t).read_only || s.txn[size_t(t)].given_up; }

  // What t holds of a page, by parts: a row each, the leaf's three parts one each for who inserts.
  struct Held {
    uint8_t read = 0, write = 0;
  };
  static uint8_t parts(Op op, int t) {
    if (op == Op::kReadRange) return 7;
    return op == Op::kInsert ? bit(t) : uint8_t(1 << item_of(op));
  }
  bool is_held(Op op) const {
    if (op == Op::kReadRange) return rules_.leaf_of_range;
    if (op == Op::kInsert) return rules_.leaf_of_insert;
    return writes(op) || rules_.holds_reads;
  }
  Held held(const State& s, int t, int page) const {
    const Txn& x = s.txn[size_t(t)];
    Held h;
    if (!x.begun || x.over || x.let_go || by_snapshot(s, t)) return h;
    for (int i = 0; i < x.done; i++) {
      const Op op = program(t).ops[size_t(i)];
      if (page_of(op) != page || !is_held(op)) continue;
      if (writes(op))
        h.write |= parts(op, t);
      else if (rules_.holds_until_end && (rules_.keeps_while_upgrading || !upgrades(s, t, page)))
        h.read |= parts(op, t);
    }
    return h;
  }
  bool wants_to_write(const State& s, int t, int page) const {
    const Txn& x = s.txn[size_t(t)];
    if (x.done == program(t).count || by_snapshot(s, t)) return false;
    const Op op = program(t).ops[x.done];
    return writes(op) && page_of(op) == page;
  }
  // Mutation: it lets go of what it reads while it waits to write.
  bool upgrades(const State& s, int t, int page) const { return s.txn[size_t(t)].waits && wants_to_write(s, t, page); }

  // Whose holds, or row locks, stand against t's next operation.
  uint8_t in_the_way(const State& s, int t) const {
    const Op op = program(t).ops[s.txn[size_t(t)].done];
    const uint8_t mine = parts(op, t);
    uint8_t found = op == Op::kWriteA || op == Op::kWriteB ? running(s, t, item_of(op)) : 0;
    if (!is_held(op)) return found;
    for (int u = 0; u < kTxns; u++) {
      if (u == t) continue;
      const Held h = held(s, u, page_of(op));
      const bool near = program(u).node == program(t).node;
      const uint8_t against = writes(op) ? h.read | h.write : h.write;
      if (near ? against & mine : against) found |= bit(u);
    }
    return found;
  }
  bool is_wanted(const State& s, int t) const {
    for (int u = 0; u < kTxns; u++)
      if (u != t && s.txn[size_t(u)].waits && in_the_way(s, u) & bit(t)) return true;
    return false;
  }
  // serializable.idle-gives-up; until keep().
  bool may_be_taken(const State& s, int t) const {
    const Txn& x = s.txn[size_t(t)];
    const int until = rules_.given_up_commits_nothing ? 0 : 1;
    return rules_.gives_up && x.done > 0 && !x.waits && x.step <= until && !by_snapshot(s, t) && is_wanted(s, t);
  }
  // Of two that share a page and want to write there, the second one is refused.
  bool is_second(const State& s, int t, int page) const {
    if (!rules_.refuses_second || held(s, t, page).read == 0) return false;
    for (int u = 0; u < kTxns; u++)
      if (u != t && s.txn[size_t(u)].waits && wants_to_write(s, u, page) && held(s, u, page).read != 0 &&
          (in_the_way(s, t) & bit(u)) && (in_the_way(s, u) & bit(t)))
        return true;
    return false;
  }

  void operate(State& s, int t, void* to, Emit emit) const {
    Txn& x = s.txn[size_t(t)];
    const Op op = program(t).ops[x.done];
    if (by_snapshot(s, t)) return read_on(s, t, op, to, emit);
    if (in_the_way(s, t) != 0) {
      if (x.waits) return;
      if (is_second(s, t, page_of(op)))
        abort(s, t);
      else
        x.waits = true;
      return emit(to, s, x.waits ? "waits" : "is refused, as the second one that wants to write");
    }
    if (start_help(s, t, item_of(op), to, emit)) return;
    if (op != Op::kInsert && rules_.newer_is_conflict && newer(s, t, item_of(op))) {
      if (!writes(op) && !has_written(s, t)) {  // serializable.readers-never-fail
        x.given_up = true;
        done(s, t, look(s, t, item_of(op), false));
        return emit(to, s, "meets a conflict, and reads on without holds");
      }
      abort(s, t);
      return emit(to, s, "meets a conflict");
    }
    done(s, t, look(s, t, item_of(op), writes(op)));
    emit(to, s, writes(op) ? "writes" : "reads");
  }
  void read_on(State& s, int t, Op op, void* to, Emit emit) const {
    if (writes(op) && rules_.given_up_writes_nothing) {
      abort(s, t);
      return emit(to, s, "may not write any more");
    }
    if (writes(op)) {  // a mutation
      if (running(s, t, item_of(op)) && op != Op::kInsert) return;
      if (newer(s, t, item_of(op)) && op != Op::kInsert) {
        abort(s, t);
        return emit(to, s, "meets a conflict");
      }
    }
    if (rules_.wait_for_doubt && start_help(s, t, item_of(op), to, emit)) return;
    done(s, t, look(s, t, item_of(op), program(t).read_only && !rules_.read_only_by_snapshot));
    emit(to, s, "reads by its snapshot");
  }

  // txn.reader-finishes-commit
  bool start_help(State& s, int t, int item, void* to, Emit emit) const {
    for (int u = 0; u < kTxns; u++) {
      if (u == t || !has_written(s, u, item) || s.txn[size_t(u)].status != Status::kCommitting) continue;
      s.txn[size_t(t)].helping = uint8_t(u + 1);
      s.txn[size_t(t)].help_cts = ++s.clock;
      emit(to, s, "takes a timestamp for another's commit");
      return true;
    }
    return false;
  }
  void help(State& s, int t, void* to, Emit emit) const {
    Txn& x = s.txn[size_t(t)];
    Txn& of = s.txn[size_t(x.helping - 1)];
    if (of.status == Status::kCommitting) of.status = Status::kCommitted, of.cts = x.help_cts;
    x.helping = x.help_cts = 0;
    emit(to, s, "finishes another's commit");
  }

  void commit(State& s, int t, void* to, Emit emit) const {
    Txn& x = s.txn[size_t(t)];
    if (!has_written(s, t)) {
      end_reader(s, t);
      return emit(to, s, "ends, and has changed nothing");
    }
    const int clock = rules_.committing_before_clock ? 1 : 0;
    const int step = x.step++;
    if (step == clock) {
      x.taken = ++s.clock;
      return emit(to, s, "takes its timestamp");
    }
    switch (step) {
      case 0:
      case 1:
        x.status = Status::kCommitting;
        x.snapshot = 0;
        return emit(to, s, "is COMMITTING");
      case 2:
        if (x.status == Status::kCommitting) x.cts = x.taken;
        x.status = Status::kCommitted, x.told = true, x.taken = 0;
        return emit(to, s, "is COMMITTED");
      default:
        x.over = true;
        forget(x);
        return emit(to, s, "lets go");
    }
  }
};

}  // namespace

Protocol* make_holds(const Programs& programs, const Rules& rules, void* place) {
  static_assert(sizeof(Holds) <= 64);
  return new (place) Holds(programs, rules);
}

}  // namespace serializable_model
