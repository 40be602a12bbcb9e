// What the product's transactions stand on, for holds.cpp and validation.cpp: versions of rows, one behind the other,
// put where they lie by the statement that makes them; the status word of each transaction; the clock.
//
// A commit or a rollback changes words alone, never a page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/paper/network.hpp"
#include "bench/txn/engine.hpp"

namespace txn {

using Id = uint64_t;  // of a transaction; 0: of what was there at first

struct Status {
  enum State : uint8_t { kActive, kPrepared, kAnnounced, kCommitted, kAborted } state = kActive;
  uint64_t cts = 0;  // kAnnounced, kCommitted
  bool running() const { return state < kCommitted; }
};

// A row's line: the newest version first.
struct Versions {
  struct Version {
    Id by;
    uint64_t number;  // as Stored::version
  };
  Version at[4];
};
static_assert(sizeof(Versions) == 64);
inline Versions& versions(std::byte* page, uint32_t line) { return *reinterpret_cast<Versions*>(page + line * 64); }

// Reads of one page, one after the other, are one.
inline std::span<const Step> of_a_page(std::span<const Step> steps) {
  size_t count = 1;
  while (steps[0].access == Access::kRead && count < steps.size() && steps[count].access == Access::kRead &&
         steps[count].row.page == steps[0].row.page)
    count++;
  return steps.first(count);
}

// Waiting for another transaction, in place of a wakeup: a step that was refused is tried again, a few times, then its
// transaction is rolled back, as one that was found in a deadlock (txn.waits-are-tries).
class Patience {
 public:
  Patience(uint64_t round_trip_ns, int tries) : ns_(round_trip_ns), pause_(round_trip_ns), left_(tries) {}
  bool wait() {
    if (left_-- <= 0) return false;
    paper::pass(pause_);
    pause_ = std::min(pause_ + ns_ / 2, 2 * ns_);
    return true;
  }

 private:
  uint64_t ns_, pause_;
  int left_;
};

// The status words and the clock, in the pool.  Each call but now() and final() is one batch.
class Words {
 public:
  explicit Words(paper::Network& network) : network_(network) {}
  // The clock, and a new id's word along with it (the product's txn.id-comes-along).
  Id begin(int node, uint64_t* snapshot);
  Status load(int node, Id id);
  void set(int node, Id id, Status status);
  // The status, then the clock, in one batch; the new timestamp.
  uint64_t set_and_count(int node, Id id, Status status);
  // txn.final-is-known
  Status known(Id id) const { return status_[id]; }
  Patience patience(int tries) const { return {network_.costs().round_trip_ns, tries}; }

 private:
  int place(Id id) const { return network_.memory_node(id); }
  paper::Network& network_;
  uint64_t clock_ = 1;
  std::vector<Status> status_{{Status::kCommitted, 0}};
};

// What one transaction knows of itself.
struct Self {
  int node, thread;
  Id id = 0;
  uint64_t snapshot = 0;
};

enum class Read : uint8_t { kFound, kTooOld };  // kTooOld: the line has no version that is as old
// The version that the transaction's snapshot sees, in a copy of the line: statuses of those that run are asked for,
// and those that may be before the snapshot are waited for.
Read look(Words&, const Self&, const Versions&, uint64_t* number);
// Whether somebody has committed a version behind the snapshot.
bool is_newer(const Words&, const Self&, const Versions&);
enum class Put : uint8_t { kDone, kRuns, kNewer };
// A new version, unless one runs or is newer than the snapshot.  Under the exclusive latch.
Put put(const Words&, const Self&, Versions*, uint64_t* number);

}  // namespace txn
