// Three SERIALIZABLE transactions on two nodes, explored: every interleaving of their steps, by one of two protocols
// that stand behind one interface, strict two-phase locking (holds.cpp) and validation at the commit timestamp
// (validation.cpp).  Each end of all of them is judged (explore.cpp).
//
// There are two rows, a and b, on one heap page, and one range, on one leaf.  What is read, written or validated under
// a page's latch is one step; so is each access to a status word or to the clock.  Versions lie where their
// transaction has put them; its status word says whether they count.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace serializable_model {

constexpr int kTxns = 3, kOpsMax = 3, kPages = 2, kItems = 3;

enum class Op : uint8_t { kReadA, kReadB, kReadRange, kWriteA, kWriteB, kInsert };  // writes read first, as UPDATE
constexpr bool writes(Op op) { return op >= Op::kWriteA; }
constexpr int item_of(Op op) { return int(op) % kItems; }
constexpr int page_of(Op op) { return item_of(op) == 2; }

// What one transaction is to do.  No operations: there is no such transaction.
struct Program {
  std::array<Op, kOpsMax> ops{};
  uint8_t count = 0, node = 0;
  bool read_only = false;
  bool writes(int item, int done) const;  // by its first `done` operations
  bool reads(int page, int done) const;
  bool operator==(const Program&) const = default;
};
using Programs = std::array<Program, kTxns>;

enum class Status : uint8_t { kActive, kPrepared, kValidating, kCommitting, kCommitted, kAborted };

struct Txn {
  uint8_t done = 0;                          // operations
  uint8_t step = 0;                          // of its commit
  uint8_t snapshot = 0, taken = 0, cts = 0;  // `taken`: from the clock by its owner; `cts`: what its status word says
  uint8_t before = 0;                        // transactions whose clients were told before it began
  uint8_t helping = 0, help_cts = 0;         // whose commit it finishes: + 1
  uint8_t unproven = 0;  // pages that it has read and that prove nothing by not having changed since
  Status status = Status::kActive;
  bool begun : 1 = false, over : 1 = false, told : 1 = false, waits : 1 = false;
  bool given_up : 1 = false;  // it has no holds any longer,
  bool doomed : 1 = false;    // and had changed something before; or it has read what may not have stayed
  bool let_go : 1 = false;    // a mutation has let go of them
  bool unused : 1 = false;
  std::array<uint8_t, kOpsMax> seen{};  // by each operation: the row's writer + 1; of the range, who has inserted
};

struct State {
  std::array<Txn, kTxns> txn;
  uint8_t clock = 1, unused[5] = {};
  bool operator==(const State& other) const { return memcmp(this, &other, sizeof *this) == 0; }
};
static_assert(sizeof(State) == 48);

// What is broken in a mutation, by its name in the tests.
struct Rules {
  // Both
  bool wait_for_doubt = true;  // a reader waits for, or finishes, a commit that its snapshot may have to see
  bool read_only_by_snapshot = true;
  bool leaf_of_range = true, leaf_of_insert = true;  // are held, or looked at again
  bool first_updater_wins = true;                    // what is newer than the snapshot is not written
  bool detects_deadlocks = true;
  // Holds
  bool gives_up = true;        // of idle holders; no mutation: patience without end
  bool refuses_second = true;  // of two that read a page and want to write it; no mutation
  bool holds_reads = true, holds_until_end = true, keeps_while_upgrading = true;
  bool newer_is_conflict = true, given_up_commits_nothing = true, given_up_writes_nothing = true;
  bool committing_before_clock = true, strict = true;
  // Validation
  enum class Doubt : uint8_t { kAbort, kWait, kOrder } doubt = Doubt::kOrder;  // a row's writer is about to commit
  const char* commit = "PCAVVF";  // PREPARED, clock, announcing the timestamp, each page, final status
  bool running_proves_nothing = true, newer_proves_nothing = true, changes_are_noted = true;
  bool insert_is_change = true, locks_rows = true;
};

class Protocol {
 public:
  using Emit = void (*)(void* to, const State&, const char* what);
  virtual ~Protocol() = default;
  // All that transaction t may do next.  None: it is over, or it waits.
  virtual void moves(const State&, int t, void* to, Emit) const = 0;
  // Whom it waits for, as a set, if it cannot go on.
  virtual uint8_t blockers(const State&, int t) const = 0;
  virtual void abort(State&, int t) const = 0;
};

// What both have in common.
class Base : public Protocol {
 public:
  Base(const Programs& programs, const Rules& rules) : programs_(programs), rules_(rules) {}
  void abort(State& s, int t) const override {
    s.txn[size_t(t)] = {.status = Status::kAborted, .begun = true, .over = true};  // what it has done counts no more
  }

 protected:
  const Program& program(int t) const { return programs_[size_t(t)]; }
  bool has_written(const State& s, int t, int item) const {
    return s.txn[size_t(t)].status != Status::kAborted && program(t).writes(item, s.txn[size_t(t)].done);
  }
  bool has_written(const State& s, int t) const {
    return has_written(s, t, 0) || has_written(s, t, 1) || has_written(s, t, 2);
  }
  void begin(State& s, int t) const {
    Txn& x = s.txn[size_t(t)];
    x.begun = true, x.snapshot = s.clock;
    for (int u = 0; u < kTxns; u++) x.before |= uint8_t(s.txn[size_t(u)].told << u);
  }
  bool newer(const State& s, int t, int item) const {
    for (int u = 0; u < kTxns; u++)
      if (u != t && has_written(s, u, item) && s.txn[size_t(u)].cts > s.txn[size_t(t)].snapshot) return true;
    return false;
  }
  // Transactions that have written the item and run.
  uint8_t running(const State& s, int t, int item) const {
    uint8_t found = 0;
    for (int u = 0; u < kTxns; u++)
      if (u != t && has_written(s, u, item) && s.txn[size_t(u)].status != Status::kCommitted) found |= uint8_t(1 << u);
    return found;
  }
  // What a snapshot sees of an item; `newest`: whatever was committed.
  uint8_t look(const State& s, int t, int item, bool newest) const;
  // The operation is done, and has seen this.
  void done(State& s, int t, uint8_t seen) const {
    Txn& x = s.txn[size_t(t)];
    x.seen[x.done++] = seen, x.waits = false;
  }
  // What nobody asks for any more makes no states.
  static void forget(Txn& x) {
    x.snapshot = x.taken = x.unproven = x.step = 0;
    x.given_up = x.doomed = false;
  }
  // A transaction that has changed nothing stands at its snapshot.
  void end_reader(State& s, int t) const {
    Txn& x = s.txn[size_t(t)];
    x.status = Status::kCommitted, x.told = x.over = true;
    forget(x);
  }

  const Programs& programs_;
  const Rules& rules_;
};

using Make = Protocol* (*)(const Programs&, const Rules&, void* place);
Protocol* make_holds(const Programs&, const Rules&, void* place);
Protocol* make_validation(const Programs&, const Rules&, void* place);

struct Verdict {
  size_t configurations = 0, states = 0, ends = 0;
  std::string broken;  // empty: nothing was
  std::string trace;   // how
};
// All programs of up to `ops` operations, on `nodes` nodes; a configuration of each `every` is explored.
Verdict explore(Make, const Rules&, int ops, int nodes, bool read_only, int every = 1);

}  // namespace serializable_model
