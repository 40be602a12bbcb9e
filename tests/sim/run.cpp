#include "run.hpp"

#include "cluster.hpp"
#include "pool_cluster.hpp"
#include "seams.hpp"

namespace sim {
namespace {

constexpr uint64_t kWorkNsMax = 3'000 * kMs, kYieldsMax = 10'000'000;  // ten times what a run takes
constexpr uint64_t kRepairNsMax = 2'000 * kMs;
constexpr uint64_t kRestNsMax = 500 * kMs, kLeaveNsMax = 1'000 * kMs;

template <class Nodes>
class Run {
 public:
  explicit Run(const Options& o) : scheduler_(o.seed, o.pace, o.nodes), cluster_(o) {
    if (o.slow_node >= 0) scheduler_.slow_down(o.slow_node, o.slow_times);
    Random chance(Random::mix(o.seed ^ 0x5a5a));
    for (int i = 0; i < o.pauses; i++)
      scheduler_.pause_node(int(chance.below(uint64_t(o.nodes))), chance.below(30 * kMs), chance.below(o.pause_ns_max));
    if (o.crash_node >= 0) scheduler_.crash_at(o.crash_node, o.crash_point, o.orphaned_ns);
    if (o.crash_node >= 0 && !o.dies_second()) scheduler_.crash_at(o.crash_node, o.target);
    if (o.second_crash >= 0) scheduler_.crash_at(o.second_crash, o.second_crash_point);
    crash_node_ = o.crash_node;
    survives_ = o.survives;
    may_break_ = o.break_one_in > 0;
  }

  void play() {
    cluster_.start();
    go_on(kWorkNsMax, "users are still at work", [&] { return !cluster_.working(); });
    if (died()) return play_the_end();
    go_on(survives_ ? kRepairNsMax : kRestNsMax, "the cluster does not come to rest",
          [&] { return died() || (repaired() && !cluster_.working() && cluster_.at_rest()); });
    if (died()) return play_the_end();
    if (!findings.over && scheduler_.everybody_waits()) cluster_.check_rest();
    cluster_.close();
    go_on(kLeaveNsMax, "nodes have not left", [&] { return !cluster_.serving(); });
    if (died()) return play_the_end();
    if (!findings.over && repaired()) cluster_.check_left();
    explain();
  }

  Outcome outcome(const Options& o) {
    Outcome out{.failed = findings.failed,
                .checker = findings.checker,
                .text = findings.text,
                .hash = scheduler_.hash(),
                .fenced = cluster_.fenced(),
                .sections = cluster_.oracle().sections(),
                .yields = scheduler_.yields(),
                .switches = scheduler_.switches(),
                .virtual_ns = scheduler_.now(),
                .longest_wait_ns = cluster_.longest_wait_ns(),
                .allowed_wait_ns = o.fairness_ns_max(),
                .batches = batches,
                .crashes = scheduler_.crashes()};
    for (int c = 0; c < kCounters; c++) out.counters.push_back(cluster_.count(Counter(c)));
    if constexpr (requires { cluster_.deaths(); }) out.deaths = cluster_.deaths();
    if constexpr (requires { cluster_.known_of_members(); }) out.members = cluster_.known_of_members();
    if constexpr (requires { cluster_.buffer_counts(); }) out.buffer_counts = cluster_.buffer_counts();
    if constexpr (requires { cluster_.disk(); }) {
      out.checkpoints = cluster_.disk().checkpoints();
      out.checkpoints_killed = cluster_.disk().killed();
    }
    return out;
  }

 private:
  bool died() const {
    return (crash_node_ >= 0 && !survives_ && (scheduler_.dying(crash_node_) || cluster_.fenced())) ||
           (may_break_ && cluster_.fenced());
  }

  bool repaired() const { return !survives_ || cluster_.repaired(); }

  // A process died, or a node was cut off: the nodes see it and end, and none comes again.
  void play_the_end() {
    go_on(kRestNsMax, "the pool is fenced, and its nodes go on",
          [&] { return !cluster_.serving() && !cluster_.working(); });
    if (findings.over) return;
    // The last to see it may have left already: then the next node that comes sees it.
    if (crash_node_ < 0 || !cluster_.withdrawn(crash_node_)) cluster_.check_refuses();
    explain();
  }

  void explain() {
    if (findings.over) return;
    if (const std::string why = cluster_.oracle().history().explain(); !why.empty())
      object(Checker::kHistory, "%s", why.c_str());
  }

  template <class Done>
  void go_on(uint64_t ns_max, const char* otherwise, Done done) {
    const uint64_t end = scheduler_.now() + ns_max;
    while (!findings.over && !done()) {
      scheduler_.run(scheduler_.now() + kMs);
      if (!findings.over) cluster_.check_waits();
      if (scheduler_.now() <= end && scheduler_.yields() <= kYieldsMax) continue;
      object(Checker::kProgress, "%s after %llu ms", otherwise,
             static_cast<unsigned long long>(scheduler_.now() / kMs));
      return;
    }
  }

  Scheduler scheduler_;
  Nodes cluster_;
  int crash_node_ = -1;
  bool may_break_ = false, survives_ = false;
};

template <class Nodes>
Outcome play(const Options& o) {
  Run<Nodes> run(o);
  run.play();
  return run.outcome(o);
}

}  // namespace

Outcome run(const Options& o) {
  findings = Findings{.listened_to = o.checkers};
  begin_mutation(o.mutation);
  forget_batches();
  tracing = o.trace;
  return o.pool ? play<PoolCluster>(o) : play<Cluster>(o);
}

}  // namespace sim
