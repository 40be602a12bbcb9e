// What a run is made of.  A seed decides all of it; the command line may decide otherwise for single things.
#pragma once

#include <cstdint>
#include <string>

#include "findings.hpp"
#include "mutation.hpp"
#include "scheduler.hpp"

namespace sim {

inline constexpr uint64_t kWayNsMax = 320 * kUs;      // of a message, or one way of a batch; mostly a sixteenth of it
inline constexpr uint64_t kTableNsMax = 2'000 * kUs;  // of what is said of members; mostly much less

struct Options {
  uint64_t seed = 0;
  bool pool = false;           // the users go through bufmgr: what a seed decides is pool_options_of()
  int nodes = 3, threads = 2;  // users of each node; beside them a worker and the log
  int pages = 4, frames = 3;   // frames of each node
  int operations = 40;         // of each user
  uint32_t gamma = 16;
  uint32_t writes_percent = 40;
  uint64_t think_ns_max = 2'000;  // in a section, and between two
  uint32_t off = 0;               // features of the protocol that are switched off, a bit for each
  bool lazy_log = false;
  bool holds = false;
  bool two_pages = false;         // sections within sections
  uint32_t interrupt_one_in = 0;  // looks of which one finds an interrupt
  bool far = false;               // messages and batches travel (far_transport.hpp)
  bool far_members = false;       // and so does what nodes hear of each other, and how they join and leave
  uint32_t call_breaks = 0;       // of calls about members, one in so many has an unknown outcome; 0: none
  bool probes_wakeups = false;    // processes post batches for each other, and wake each other (wakeup_probe.hpp)
  bool former = false;            // and what was said before a node left comes again to its next incarnation
  uint32_t break_one_in = 0;      // of these batches, one in so many has an unknown outcome
  bool noise = false;             // unasked wakeups and hints
  int slow_node = -1;
  uint32_t slow_times = 1;
  int pauses = 0;  // of some node, of up to pause_ns_max
  uint64_t pause_ns_max = 0;
  int victim = -1;  // node that works while all others' users use only the first page, in a loop
  int leaver = -1;  // leaves in the middle, and joins again
  int crash_node = -1;
  uint64_t crash_point = 0;       // the yield of that node at which it crashes
  uint64_t crash_under_page = 0;  // or the page, of those that peers send to it, under whose way it crashes
  uint64_t orphaned_ns = 0;       // first one of its processes dies alone, and the others so much later
  bool survives = false;          // its peers repair; else the pool is fenced
  int second_crash = -1;          // then: a node that dies too, perhaps in the middle of its repair
  uint64_t second_crash_point = 0;
  int crashes_in_repair = 0;  // so many of those that take over a page die soon after
  bool rejoins = false;       // the first one, when it is repaired
  uint64_t dies_again = 0;    // so many yields after it has begun to do so; 0: it does not
  // Where a node dies, of buffer pools: crash_node, or while that is dead another one.
  CrashTarget target;
  bool most_die = false;  // all nodes but one, one by one, also there
  // of bufmgr:
  bool one_home = false;          // all pages belong into one bucket of the frame table
  bool second_chance = false;     // how frames are replaced; else by epochs
  bool loses_memory = false;      // what would be left of it is looked at again and again, and checkpoints are made
  bool slow_checkpoints = false;  // a process makes checkpoints in steps, and dies in some of them
  uint32_t large_one_in = 0;      // changes of which one fills half a page, and so the redo ring
  Pace pace;
  Mutation mutation = Mutation::kNone;
  Checkers checkers = kAllCheckers;
  bool trace = false;

  // The longest wait for a latch (rationale.md).
  uint64_t fairness_ns_max() const;
  // Whether the node that is to die at `target` is not the first one.
  bool dies_second() const { return target.phase == Phase::kRepair || is_of_repair(target.at); }
  bool may_fence() const { return (crash_node >= 0 && !survives) || break_one_in > 0; }
  uint64_t slow_stall_ns_max(int node) const;  // the longest stall of one step; 0 unless the node is slow
};

// All that follows from a seed.
Options options_of(uint64_t seed);
Options pool_options_of(uint64_t seed);
Options survivors_options_of(uint64_t seed);  // a node dies, and its peers repair
Options pool_survivors_options_of(uint64_t seed);
Options members_options_of(uint64_t seed);  // of survivors, and members are far
// Of pools' survivors: nodes die at that point, in that phase; one of them, or all but one.
Options crash_options_of(uint64_t seed, FaultPoint, Phase, bool most_die);
// The command that replays it.
std::string command_of(const Options&);
// Reads "--name value" pairs; false: they make no sense.
bool parse(int count, char** words, Options*);

}  // namespace sim
