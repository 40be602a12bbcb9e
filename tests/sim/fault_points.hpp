// FaultPoint: where a node may die.  Each yield of a node's fiber is one of these (sim.yields-may-crash).
//
// A node does not die where a file is made, renamed or removed, by a join, a leave or gclctl: files are the machine's,
// and a join happens at once.  tests/power and tests/unit end processes there.  Nor does it die where a process waits
// for a lock of a file, or calls sched_yield(): in buffer pools a process has that of the pool for one step only.  What
// is on its way between nodes is bare nodes' alone, and they die under it in SurvivorSeeds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sim {

enum class FaultPoint : uint8_t {
#define GCL_FAULT_POINT(name, words) name,
#include "fault_points.def"
#undef GCL_FAULT_POINT
  kElsewhere,  // none of the list
};
inline constexpr int kFaultPoints = int(FaultPoint::kElsewhere);
const char* fault_point_name(FaultPoint);  // as the enumerator, without its k
const char* fault_point_words(FaultPoint);

// What is under way when a node dies.
enum class Phase : uint8_t {
  kWork,        // neither of these:
  kRepair,      // another node is dead, and its name is not free yet
  kCheckpoint,  // a checkpoint is made, until it has taken the place of the one before
  kCount,
};
inline constexpr int kPhases = int(Phase::kCount);
const char* phase_name(Phase);
using Phases = uint8_t;  // a set
constexpr Phases only(Phase p) { return Phases(1u << int(p)); }

// No node comes there before another one is dead.
constexpr bool is_of_repair(FaultPoint point) {
  return point == FaultPoint::kTakeOver || point == FaultPoint::kReadRing || point == FaultPoint::kReadWords ||
         point == FaultPoint::kDeathJournalled;
}

// A node's death.
struct Crash {
  int node;
  FaultPoint at;
  Phases phases;
};

// Where a node is to die: when it has come there `skip` times before.
struct CrashTarget {
  FaultPoint at = FaultPoint::kElsewhere;  // kElsewhere: nowhere
  Phase phase = Phase::kWork;
  uint32_t skip = 0;
};

}  // namespace sim
