#include "options.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "coherence/line/features.hpp"
#include "random.hpp"

namespace sim {
namespace {

constexpr int kNodesOfPool = 58, kNodesOfProbe = 8;
constexpr uint64_t kLogNsMax = 600 * kUs;                              // Cluster::write_log()
constexpr uint64_t kResendNsMax = 1'000 * kUs, kResendRoundTrips = 4;  // protocol_driver.cpp
constexpr uint64_t kRefusalsMax = 8, kRacesLost = 16, kRacesLostByVictim = 8;

struct Named {
  const char* name;
  std::function<void(Options&, uint64_t)> set;
  std::function<uint64_t(const Options&)> get;
};

// What the command line may decide.
const std::vector<Named>& named() {
#define GCL_OPTION(name, field)                                           \
  {                                                                       \
    name, [](Options& o, uint64_t v) { o.field = decltype(o.field)(v); }, \
        [](const Options& o) { return uint64_t(o.field); }                \
  }
  static const std::vector<Named> all = {
      GCL_OPTION("nodes", nodes),
      GCL_OPTION("threads", threads),
      GCL_OPTION("pages", pages),
      GCL_OPTION("frames", frames),
      GCL_OPTION("operations", operations),
      GCL_OPTION("gamma", gamma),
      GCL_OPTION("writes", writes_percent),
      GCL_OPTION("grain", pace.grain),
      GCL_OPTION("late", pace.late_one_in),
      GCL_OPTION("verb-ns", pace.verb_ns_max),
      GCL_OPTION("slow-node", slow_node),
      GCL_OPTION("crash-node", crash_node),
      GCL_OPTION("crash-point", crash_point),
      GCL_OPTION("crash-under-page", crash_under_page),
      GCL_OPTION("orphaned-ns", orphaned_ns),
      GCL_OPTION("second-crash", second_crash),
      GCL_OPTION("second-crash-point", second_crash_point),
      GCL_OPTION("crashes-in-repair", crashes_in_repair),
      GCL_OPTION("rejoins", rejoins),
      GCL_OPTION("interrupts", interrupt_one_in),
      GCL_OPTION("pauses", pauses),
      GCL_OPTION("leaver", leaver),
      GCL_OPTION("off", off),
      GCL_OPTION("victim", victim),
      GCL_OPTION("far", far),
      GCL_OPTION("far-members", far_members),
      GCL_OPTION("dies-again", dies_again),
      GCL_OPTION("call-breaks", call_breaks),
      GCL_OPTION("probes-wakeups", probes_wakeups),
      GCL_OPTION("former", former),
      GCL_OPTION("breaks", break_one_in),
      GCL_OPTION("noise", noise),
      GCL_OPTION("checkers", checkers),
      GCL_OPTION("one-home", one_home),
      GCL_OPTION("loses-memory", loses_memory),
      GCL_OPTION("second-chance", second_chance),
      GCL_OPTION("large", large_one_in),
      GCL_OPTION("crash-at", target.at),
      GCL_OPTION("crash-phase", target.phase),
      GCL_OPTION("crash-skip", target.skip),
      GCL_OPTION("most-die", most_die),
      GCL_OPTION("slow-checkpoints", slow_checkpoints),
      GCL_OPTION("lazy-log", lazy_log),
      GCL_OPTION("two-pages", two_pages),
  };
#undef GCL_OPTION
  return all;
}

}  // namespace

Options options_of(uint64_t seed) {
  Options o;
  o.seed = seed;
  Random r(Random::mix(seed + 1));
  Random other(Random::mix(seed ^ 0xc0de));  // its draws leave the rest of a seed as it was
  const bool many = seed % 25 == 24;         // as many nodes as there can be, and less of everything else
  o.nodes = many ? int(r.between(30, kNodesOfPool)) : int(r.between(2, 6));
  o.threads = int(many ? r.between(1, 2) : r.between(1, 4));
  o.pages = int(r.between(1, 6));
  o.frames = int(r.between(1, uint64_t(o.pages)));
  o.operations = many ? 8 : int(r.between(40, 120));
  o.gamma = uint32_t(r.one_in(2) ? 16 : r.between(1, 8));
  o.writes_percent = uint32_t(r.between(5, 80));
  o.think_ns_max = r.one_in(2) ? 1'000 : 8'000;
  o.lazy_log = r.one_in(3);
  o.holds = r.one_in(3);
  o.two_pages = r.one_in(3);
  o.interrupt_one_in = r.one_in(3) ? uint32_t(r.between(5, 50)) : 0;
  o.noise = r.one_in(3);

  static constexpr uint32_t kGrains[] = {1, 3, 10, 40};
  o.pace.grain = kGrains[r.below(4)];
  o.pace.step_ns_max = r.one_in(2) ? 100 : 1'000;
  o.pace.verb_ns_max = r.one_in(2) ? 300 : 5'000;
  static constexpr uint32_t kLate[] = {0, 0, 1, 4};
  o.pace.late_one_in = kLate[other.below(4)];
  o.far = other.one_in(3);
  o.far_members = o.far && Random(Random::mix(seed ^ 0xfa12)).one_in(2);
  o.pace.wake_ns_max = r.one_in(2) ? 2 * kUs : 50 * kUs;
  o.pace.stall_one_in = r.one_in(2) ? uint32_t(r.between(200, 5'000)) : 0;
  o.pace.stall_ns_max = r.one_in(2) ? 20 * kUs : 2'000 * kUs;
  o.pace.spurious_one_in = r.one_in(3) ? 8 : 0;

  if (!many && r.one_in(6)) {  // no node is slow or dies: only the rules decide how long it waits
    o.victim = int(r.below(uint64_t(o.nodes)));
    o.operations = 20;
    o.pace.stall_one_in = 0;
    return o;
  }
  if (r.one_in(4)) {
    o.slow_node = int(r.below(uint64_t(o.nodes)));
    o.slow_times = uint32_t(r.between(2, 20));
  }
  if (r.one_in(4)) {
    o.pauses = int(r.between(1, 5));
    o.pause_ns_max = 20'000 * kUs;
  }
  if (r.one_in(5)) o.leaver = int(r.below(uint64_t(o.nodes)));
  if (r.one_in(4)) {
    o.crash_node = int(r.below(uint64_t(o.nodes)));
    o.crash_point = r.between(1, uint64_t(o.operations * o.threads) * 250 / o.pace.grain + 100);
    o.orphaned_ns = r.one_in(3) ? r.between(10 * kUs, 20'000 * kUs) : 0;
    if (o.leaver == o.crash_node) o.leaver = -1;
  } else if (o.far && other.one_in(3)) {
    o.break_one_in = uint32_t(other.between(50, 3'000));
  }
  o.probes_wakeups = o.far_members && o.break_one_in == 0 && !many;
  if (r.one_in(5)) {  // safe without, but not fair
    o.off = 1u << r.below(coherence::kFeatures) | 1u << r.below(coherence::kFeatures);
    o.checkers &= ~only(Checker::kFairness);
  }
  return o;
}

namespace {

// A node dies, and its peers repair.
Options with_survivors(Options o) {
  Random r(Random::mix(o.seed ^ 0xdead));
  o.survives = true;
  o.break_one_in = 0;
  o.victim = -1;
  o.crash_node = int(r.below(uint64_t(o.nodes)));
  o.crash_point = r.between(1, uint64_t(o.operations * o.threads) * 250 / o.pace.grain + 100);
  o.orphaned_ns = r.one_in(3) ? r.between(10 * kUs, 20'000 * kUs) : 0;
  o.rejoins = r.one_in(2);
  if (o.nodes > 2 && r.one_in(2)) {
    o.second_crash = int((uint64_t(o.crash_node) + r.between(1, uint64_t(o.nodes) - 1)) % uint64_t(o.nodes));
    o.second_crash_point = r.between(1, 2 * o.crash_point);
  } else if (o.nodes > 2) {
    o.crashes_in_repair = int(r.below(2));
  }
  if (o.leaver == o.crash_node || o.leaver == o.second_crash) o.leaver = -1;
  Random late(Random::mix(o.seed ^ 0x1a7e));  // its draws leave the rest of a seed as it was
  if (o.far && late.one_in(2)) {              // the page arrives when the node is there again
    o.crash_under_page = late.between(1, uint64_t(o.operations) / 4);
    o.crash_point = o.orphaned_ns = 0;
    o.rejoins = true;
  }
  Random again(Random::mix(o.seed ^ 0xa9a1));
  if (o.far_members && o.rejoins && again.one_in(2)) o.dies_again = again.between(1, 2 * o.crash_point + 2'000);
  Random calls(Random::mix(o.seed ^ 0xca11));  // so many nodes that one is left, whatever comes of a call
  if (o.far_members && o.nodes > 3 && calls.one_in(2)) {
    o.call_breaks = uint32_t(calls.between(2, 12));
  } else if (o.far_members && o.nodes > 3 && calls.one_in(2)) {  // one node is cut off, and comes again
    o.break_one_in = uint32_t(calls.between(200, 3'000));
    o.leaver = -1;
    o.probes_wakeups = false;
  }
  return o;
}

// What the seed says, where the words --pool and --survivors are given.
Options drawn(uint64_t seed, bool pool, bool survivors) {
  if (pool) return survivors ? pool_survivors_options_of(seed) : pool_options_of(seed);
  return survivors ? survivors_options_of(seed) : options_of(seed);
}

}  // namespace

Options survivors_options_of(uint64_t seed) { return with_survivors(options_of(seed)); }
Options pool_survivors_options_of(uint64_t seed) { return with_survivors(pool_options_of(seed)); }

Options members_options_of(uint64_t seed) {
  Options o = options_of(seed);
  o.far = o.far_members = true;
  o.probes_wakeups = o.nodes < kNodesOfProbe;
  return with_survivors(o);
}

// Small clusters, so that a seed costs little.
Options crash_options_of(uint64_t seed, FaultPoint at, Phase phase, bool most_die) {
  Options o = pool_survivors_options_of(seed);
  Random r(Random::mix(seed ^ 0xc4a5));
  o.nodes = most_die ? 4 : 3;
  o.threads = 2;
  o.frames = int(3 * o.threads + r.between(2, 9));
  o.operations = 24;
  o.crash_node = int(r.below(uint64_t(o.nodes)));
  o.second_crash = -1;
  o.crashes_in_repair = 0;
  o.rejoins = false;
  o.orphaned_ns = 0;
  o.slow_node = -1;
  o.pauses = 0;
  o.leaver = -1;
  o.lazy_log = o.loses_memory = true;
  o.slow_checkpoints = phase == Phase::kCheckpoint || r.one_in(2);
  o.pace.grain = r.one_in(2) ? 1 : 3;
  o.target = {at, phase, uint32_t(r.below(r.one_in(2) ? 3 : 40))};
  o.most_die = most_die;
  if (at == FaultPoint::kLeft) {  // once in a run
    o.leaver = (o.crash_node + o.dies_second()) % o.nodes;
    o.target.skip = 0;
  }
  if (at == FaultPoint::kRingTail) o.large_one_in = 1, o.writes_percent = 80;
  o.crash_point = o.dies_second() ? r.between(1, 8'000) : 0;  // anywhere
  return o;
}

uint64_t Options::slow_stall_ns_max(int node) const {
  return pace.stall_one_in && node == slow_node ? pace.stall_ns_max * slow_times : 0;
}

// rationale.md says why.
uint64_t Options::fairness_ns_max() const {
  const uint64_t step = pace.step_ns_max * slow_times;
  const uint64_t section = 16 * step + think_ns_max;
  const uint64_t sessions = uint64_t(threads) + 1;
  const uint64_t turn = (gamma * sessions + sessions) * section;
  const uint64_t ways = far ? 4 * kWayNsMax : 0;  // there and back, twice: of the requester's batch and of the owner's
  const uint64_t batch = 8 * pace.verb_ns_max * slow_times + ways;
  uint64_t exchange = (150 / pace.grain + 5) * step + batch + 3 * pace.wake_ns_max;
  exchange += std::min(kResendRoundTrips * batch, kResendNsMax);
  if (far) exchange += 3 * kWayNsMax;  // the request, the answer, and that a grant is confirmed
  if (lazy_log) exchange += kLogNsMax;
  if (pace.stall_one_in) exchange += pace.stall_ns_max;
  const uint64_t before_us = uint64_t(nodes) * uint64_t(threads) + kRefusalsMax;
  return (victim < 0 ? kRacesLost : kRacesLostByVictim) * before_us * (turn + exchange) *
         (two_pages ? uint64_t(pages) : 1);
}

std::string command_of(const Options& o) {
  std::string command = std::string("build/bin/sim ") + (o.pool ? "--pool " : "") + (o.survives ? "--survivors " : "") +
                        "--seed " + std::to_string(o.seed);
  const Options of_seed = drawn(o.seed, o.pool, o.survives);
  for (const Named& n : named())
    if (n.get(o) != n.get(of_seed)) command += std::string(" --") + n.name + " " + std::to_string(int64_t(n.get(o)));
  if (o.mutation != Mutation::kNone) command += std::string(" --mutation ") + mutation_name(o.mutation);
  return command;
}

bool parse(int count, char** words, Options* o) {
  bool pool = false, survivors = false;  // these, wherever they stand: all others decide after them
  for (int i = 0; i < count; i++) {
    pool |= std::string(words[i]) == "--pool";
    survivors |= std::string(words[i]) == "--survivors";
  }
  for (int i = 0; i + 1 < count; i++) {
    if (std::string(words[i]) != "--seed") continue;
    const uint64_t seed = strtoull(words[i + 1], nullptr, 0);
    *o = drawn(seed, pool, survivors);
  }
  for (int i = 0; i < count; i += 2) {
    const std::string name = words[i];
    if (name == "--trace" || name == "--pool" || name == "--survivors") {
      o->trace |= name == "--trace";
      i--;
      continue;
    }
    if (i + 1 >= count || name.rfind("--", 0) != 0) return false;
    if (name == "--seed") continue;
    if (name == "--mutation") {
      o->mutation = mutation_of(words[i + 1]);
      if (o->mutation == Mutation::kCount) return false;
      continue;
    }
    bool known = false;
    for (const Named& n : named())
      if (name == std::string("--") + n.name) {
        n.set(*o, strtoull(words[i + 1], nullptr, 0));
        known = true;
      }
    if (!known) return false;
  }
  for (const int node : {o->victim, o->leaver, o->crash_node, o->second_crash, o->slow_node}) {
    if (node < int(o->nodes) && int(o->nodes) <= kNodesOfPool) continue;
    fprintf(stderr, "--nodes: at most %d, and this seed has a part for node %d\n", kNodesOfPool, node);
    return false;
  }
  return true;
}

}  // namespace sim
