// A node comes among others, one of which dies: what a dead process held of its own memory holds up nobody.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "coherence/member/node.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/peers.hpp"
#include "coherence/transport/shm/shm_wakeup.hpp"
#include "findings.hpp"
#include "home.hpp"
#include "meeting.hpp"
#include "mutation.hpp"
#include "scheduler.hpp"
#include "seams.hpp"

namespace sim {
namespace {

using namespace coherence;  // NOLINT: the simulator speaks of nothing else

constexpr int kThere = 0, kComes = 1;
constexpr uint64_t kPoints = 60;  // of the one that dies; its lock is held at many of them
constexpr uint64_t kLimitNs = 100 * kMs;

// A process of one node maps its peers, again and again; a node comes.
class Meeting {
 public:
  Meeting(uint64_t seed, const Pace& pace) : scheduler_(seed, pace, 2) {
    findings = Findings{};
    begin_mutation(Mutation::kNone);
    forget_batches();
    const std::string path = home() + "/pool";
    PoolSpec spec{.nodes_max = 2, .compatibility = "sim=1\n"};
    spec.region_bytes[kRegionPages] = 2 * kPageSize;
    Problem problem;
    auto made = LocalPool::create({.path = path.c_str(), .compatibility = "sim=1\n"}, spec, &problem);
    if (!made) fprintf(stderr, "%s\n", problem.text), abort();
    pool_ = made.take();
    for (const int n : {kThere, kComes}) {
      auto joined = Node::join(*pool_, NodeId{uint8_t(n)}, {.frames = 2, .sessions_max = 2, .private_bytes = 4096},
                               &problem, shm_transport());
      if (!joined) fprintf(stderr, "%s\n", problem.text), abort();
      node_[n] = joined.take();
    }
  }
  ~Meeting() {
    for (auto& node : node_) node.reset();
    pool_.reset();
    unmap_all();
    empty_home();
  }

  Scheduler& scheduler() { return scheduler_; }
  void map_peers() {
    scheduler_.spawn(kThere, [this] {
      for (;; scheduler_.sleep(100))  // where it is calm nothing else hands on
        peers_of(node_[kThere]->parts()).share(NodeId{kComes}, *node_[kComes]->parts().arena);
    });
  }
  // Whether they have met in time.
  template <class Comes>
  bool meet_when(Comes comes) {
    scheduler_.spawn(Scheduler::kNobody, [this, comes] {
      comes();
      const Scheduler::Calm calm(scheduler_);
      meet(node_[kComes]->parts(), node_[kThere]->parts());
      met_ = true;
      scheduler_.stop();
    });
    (void)scheduler_.run(scheduler_.now() + kLimitNs);
    return met_;
  }

 private:
  Scheduler scheduler_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Node> node_[2];
  bool met_ = false;
};

TEST(Meeting, ANodeThatComesDoesNotWaitForTheDead) {
  for (const uint64_t orphaned_ns : {uint64_t{0}, 200 * kMs}) {
    for (uint64_t points = 1; points < kPoints; points++) {
      Meeting meeting(points, Pace{.grain = 1});
      Scheduler& scheduler = meeting.scheduler();
      scheduler.crash_at(kThere, points, orphaned_ns);
      meeting.map_peers();
      EXPECT_TRUE(meeting.meet_when([&] {
        while (!scheduler.dying(kThere)) scheduler.sleep(kUs);
      })) << "it died at its yield "
          << points << (orphaned_ns ? ", one process first" : "");
    }
  }
}

// sim.no-death-in-calm
TEST(Meeting, NoNodeDiesWhileOneComes) {
  for (uint64_t seed = 1; seed < kPoints; seed++) {
    Meeting meeting(seed, Pace{.grain = 1, .step_ns_max = 2 * kUs});
    Scheduler& scheduler = meeting.scheduler();
    meeting.map_peers();
    scheduler.spawn(kThere, [&] {  // it may die at any moment, whatever the other process does
      for (;;) scheduler.sleep(100);
    });
    EXPECT_TRUE(meeting.meet_when([&] {
      scheduler.sleep(seed * 700);
      scheduler.crash_soon(kThere, 1);
    })) << "seed "
        << seed;
    (void)scheduler.run(scheduler.now() + kLimitNs);
    EXPECT_TRUE(scheduler.crashed(kThere));
  }
}

}  // namespace
}  // namespace sim
