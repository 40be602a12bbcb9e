// Validation at the commit timestamp.  Reads take no locks: a reader notes each page that it has read; rows are locked
// in place, by their versions.  A commit that has changed something: set PREPARED, take the timestamp, announce it in
// the status word, look at each page that was read, set the final status.  One that has changed nothing is over.
//
// A page that has not changed since it was read proves that its rows have not, but for two cases, which the status log
// hides: a version that ran when it was read may have been committed since, and one that is newer than the snapshot was
// there already.  Their pages are looked at again, changed or not.
#include <new>

#include "model.hpp"

namespace serializable_model {
namespace {

class Validation final : public Base {
 public:
  using Base::Base;

  void moves(const State& s, int t, void* to, Emit emit) const override {
    const Txn& x = s.txn[size_t(t)];
    if (x.over) return;
    State next = s;
    if (!x.begun) {
      begin(next, t);
      return emit(to, next, "begins");
    }
    if (blockers(s, t) != 0) return;
    if (x.done < program(t).count) return operate(next, t, to, emit);
    commit(next, t, to, emit);
  }

  uint8_t blockers(const State& s, int t) const override {
    const Txn& x = s.txn[size_t(t)];
    if (!x.begun || x.over) return 0;
    if (x.done < program(t).count) {
      const Op op = program(t).ops[x.done];
      if (!writes(op)) return rules_.wait_for_doubt ? in_doubt(s, t, item_of(op)) : uint8_t(0);
      return op == Op::kInsert || !rules_.locks_rows ? uint8_t(0) : running(s, t, item_of(op));
    }
    const int step = next_step(s, t);
    if (rules_.commit[step] != 'V' || x.doomed || rules_.doubt == Rules::Doubt::kAbort) return 0;
    return validate(s, t, page_at(step)).in_doubt;
  }

 private:
  // Those of which it is not known whether they come before the snapshot.
  uint8_t in_doubt(const State& s, int t, int item) const {
    uint8_t found = 0;
    for (int u = 0; u < kTxns; u++) {
      const Txn& y = s.txn[size_t(u)];
      const bool before =
          y.status == Status::kPrepared || (y.status == Status::kValidating && y.cts <= s.txn[size_t(t)].snapshot);
      if (u != t && before && has_written(s, u, item)) found |= uint8_t(1 << u);
    }
    return found;
  }

  void operate(State& s, int t, void* to, Emit emit) const {
    const Op op = program(t).ops[s.txn[size_t(t)].done];
    if (op != Op::kReadRange && op != Op::kInsert && writes(op) && rules_.first_updater_wins &&
        newer(s, t, item_of(op))) {
      abort(s, t);
      return emit(to, s, "meets a newer version of the row that it would write");
    }
    const bool newest = !rules_.read_only_by_snapshot && !has_written(s, t);
    if (!writes(op)) note_page(s, t, op);
    done(s, t, look(s, t, item_of(op), newest));
    if (writes(op)) change_page(s, t, op);
    emit(to, s, writes(op) ? "writes" : "reads");
  }
  void note_page(State& s, int t, Op op) const {
    const bool hidden = (rules_.running_proves_nothing && running(s, t, item_of(op)) != 0) ||
                        (rules_.newer_proves_nothing && newer(s, t, item_of(op)));
    if (hidden) s.txn[size_t(t)].unproven |= uint8_t(1 << page_of(op));
  }
  void change_page(State& s, int t, Op op) const {
    if (!rules_.changes_are_noted || (op == Op::kInsert && !rules_.insert_is_change)) return;
    for (int u = 0; u < kTxns; u++)
      if (u != t && !s.txn[size_t(u)].over && program(u).reads(page_of(op), s.txn[size_t(u)].done))
        s.txn[size_t(u)].unproven |= uint8_t(1 << page_of(op));
  }

  // The order of a commit's steps has a V for each page.
  int page_at(int step) const {
    int page = 0;
    for (int i = 0; i < step; i++) page += rules_.commit[i] == 'V';
    return page;
  }
  int next_step(const State& s, int t) const {
    const Txn& x = s.txn[size_t(t)];
    int step = x.step;
    while (rules_.commit[step] == 'V' && !program(t).reads(page_at(step), x.done)) step++;
    return step;
  }
  struct Found {
    bool stale = false;
    uint8_t in_doubt = 0;
  };
  Found validate(const State& s, int t, int page) const {
    const Txn& x = s.txn[size_t(t)];
    Found found;
    if (!(x.unproven >> page & 1)) return found;
    for (int i = 0; i < x.done; i++) {
      const Op op = program(t).ops[size_t(i)];
      if (writes(op) || page_of(op) != page || (op != Op::kReadRange && has_written(s, t, item_of(op)))) continue;
      if (op == Op::kReadRange && !rules_.leaf_of_range) continue;
      for (int u = 0; u < kTxns; u++) {
        const Txn& y = s.txn[size_t(u)];
        if (u == t || !has_written(s, u, item_of(op))) continue;
        const bool before = x.taken == 0 || y.cts < x.taken;  // in the order of timestamps, as far as there are any
        if (y.status == Status::kCommitted && y.cts > x.snapshot && before) found.stale = true;
        const bool announced = y.status == Status::kValidating && rules_.doubt == Rules::Doubt::kOrder;
        if (y.status == Status::kPrepared || (y.status == Status::kValidating && (before || !announced)))
          found.in_doubt |= uint8_t(1 << u);
      }
    }
    return found;
  }

  void commit(State& s, int t, void* to, Emit emit) const {
    Txn& x = s.txn[size_t(t)];
    if (!has_written(s, t)) {
      end_reader(s, t);
      return emit(to, s, "ends, and has changed nothing");
    }
    if (x.doomed) {
      abort(s, t);
      return emit(to, s, "is rolled back");
    }
    const int step = next_step(s, t);
    x.step = uint8_t(step + 1);
    switch (rules_.commit[step]) {
      case 'P':
        x.status = Status::kPrepared;
        return emit(to, s, "is PREPARED");
      case 'C':
        x.taken = ++s.clock;
        return emit(to, s, "takes its timestamp");
      case 'A':
        x.status = Status::kValidating, x.cts = x.taken;
        return emit(to, s, "announces its timestamp");
      case 'V': {
        const Found found = validate(s, t, page_at(step));
        if (!found.stale && found.in_doubt == 0) return emit(to, s, "has validated a page");
        x.doomed = true;
        return emit(to, s, found.stale ? "has read what has changed" : "has read what may change");
      }
      default:
        x.status = Status::kCommitted, x.cts = x.taken, x.told = x.over = true;
        forget(x);
        return emit(to, s, "is COMMITTED");
    }
  }
};

}  // namespace

Protocol* make_validation(const Programs& programs, const Rules& rules, void* place) {
  static_assert(sizeof(Validation) <= 64);
  return new (place) Validation(programs, rules);
}

}  // namespace serializable_model
