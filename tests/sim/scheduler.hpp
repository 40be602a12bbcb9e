// Scheduler: fibers in virtual time, all on one thread of the operating system.  Which of them goes on is decided at
// yield points by delays drawn from the seed, and by nothing else.
//
// sim.instantaneous-between-yields: A fiber runs without interruption from one yield point to the next; what happens in
//     between is instantaneous.  The order of execution is the order of virtual time.
// sim.yields-may-crash: Yield points are accesses to atomics, of which one in about Pace::grain yields
//     (instrumented_atomics.cpp), park, sleep, verbs and completions.  Each is a fault point: a node may crash there
//     (fault_points.def has the list).
// sim.no-death-in-calm: In the life of a Calm no yield is a fault point.  So a fiber that waits in it for what a fiber
//     of a living node holds gets it.
// sim.crash-drops-fibers: A crash drops the node's fibers: their stacks are never resumed nor unwound.
// sim.machine-independent: Nothing depends on an address, a clock or an id of the machine's: the scheduler looks at
//     fibers in the order of their ids.
// sim.no-yield-outside-fibers: Outside fibers (setting up, looking at the result) nothing yields, and nothing may wait.
#pragma once

#include <ucontext.h>
#include <csetjmp>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "fault_points.hpp"
#include "random.hpp"

namespace coherence {
class Batch;
}

namespace sim {

inline constexpr uint64_t kUs = 1'000, kMs = 1'000'000;  // in nanoseconds of virtual time

// What a run's time is made of.
struct Pace {
  uint32_t grain = 8;            // accesses to atomics between two yields, on average
  uint64_t step_ns_max = 300;    // what happens between two yields takes
  uint64_t verb_ns_max = 2'000;  // a verb, and its completion
  uint32_t late_one_in = 0;      // batches of which one is complete some time after post() returned
  uint64_t wake_ns_max = 40'000;
  uint32_t stall_one_in = 0;  // yields of which one takes long: the process has lost its CPU
  uint64_t stall_ns_max = 1'000'000;
  uint32_t spurious_one_in = 0;  // waits of which one ends by itself
};

class Scheduler {
 public:
  static constexpr int kNobody = -1;  // the node of fibers that belong to none

  Scheduler(uint64_t seed, const Pace& pace, int nodes);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;

  // --- from outside fibers -------------------------------------------------------------------------------------------
  enum class Ended : uint8_t { kStopped, kLimit, kNobodyLeft };
  Ended run(uint64_t until_ns);  // until a fiber calls stop(), or virtual time passes the limit
  bool everybody_waits() const;  // no fiber has anything to do before its deadline
  // Crashes `node` when its fibers have yielded so often; 0: never.  With `orphaned_ns`, first the process that yielded
  // last dies alone, and the others so much later.
  void crash_at(int node, uint64_t points, uint64_t orphaned_ns = 0) {
    nodes_[node].crash_at = points;
    nodes_[node].orphaned_ns = orphaned_ns;
  }
  // Crashes `node` there, if it has not crashed before.
  void crash_at(int node, const CrashTarget& target) { nodes_[node].target = target; }
  // Called with a node that has crashed: what the system does for dead processes.
  void on_crash(std::function<void(int)> then) { on_crash_ = std::move(then); }
  void slow_down(int node, uint32_t times) { nodes_[node].slow = times; }
  // All fibers of `node` stand still from `from` on for `ns`.
  void pause_node(int node, uint64_t from, uint64_t ns);

  // --- from fibers ---------------------------------------------------------------------------------------------------
  void yield(FaultPoint at = FaultPoint::kWorking);  // a point between two steps
  void yield_at(const volatile void* word);          // before an access to it
  void verb(FaultPoint at);                          // when a batch is complete, or is looked at
  void verb(const coherence::Batch&, int op);        // before one of its verbs
  void sleep(uint64_t ns, FaultPoint at = FaultPoint::kWorking);
  void spin(uint64_t ns);  // a sleep of a fiber that has work to do
  // Another fiber of this node that begins within a verb's time.  Short-lived: the next fiber may get its id.
  void spawn_verbs(std::function<void()> body) { spawn_verbs(running_->node, std::move(body)); }
  void spawn_verbs(int node, std::function<void()> body);  // of that node
  // Sleeps while *word == expected, for at most `ns`.  Looking and falling asleep are one step.
  void park(const void* word, uint32_t expected, uint64_t ns);
  int wake(const void* word, int count);
  void crash(int node);  // does not return if it is the caller's
  void crash_soon(int node, uint64_t points) { nodes_[node].crash_at = nodes_[node].points + points; }
  void revive(int node) { nodes_[node].crashed = nodes_[node].dying = false; }  // fibers may be spawned for it again
  void kill_self();  // the process ends, its node does not know yet
  void stop();       // run() returns

  // What happens in a Calm's life happens at once (sim.no-death-in-calm).
  class Calm;

  // --- from anywhere -------------------------------------------------------------------------------------------------
  void spawn(int node, std::function<void()> body);
  uint64_t now() const { return now_; }
  bool calm() const { return calm_; }
  bool in_fiber() const { return running_ != nullptr; }
  int fiber() const { return running_ ? running_->id : -1; }
  int node() const { return running_ ? running_->node : kNobody; }
  bool crashed(int node) const { return nodes_[node].crashed; }
  bool dying(int node) const { return nodes_[node].dying; }  // crashed, or one of its processes has died
  uint64_t crashed_ns(int node) const { return nodes_[node].crashed_ns; }
  const std::vector<Crash>& crashes() const { return crashes_; }
  uint64_t paused_ns(int node, uint64_t from, uint64_t to) const;  // how long `node` stood still in between
  uint64_t yields() const { return yields_; }
  uint64_t switches() const { return switches_; }
  uint64_t hash() const { return hash_; }
  void trace(uint64_t word) { hash_ = Random::mix(hash_ ^ word); }  // into the hash
  Random& random() { return random_; }
  bool late() { return random_.one_in(pace_.late_one_in); }  // whether a batch is

 private:
  enum class State : uint8_t { kWaiting, kEnded, kDropped };
  struct Fiber {
    int id, node;
    std::function<void()> body;
    void* stack = nullptr;
    ucontext_t entry;
    jmp_buf context;
    bool started = false;
    State state = State::kWaiting;
    const void* word = nullptr;  // what it is parked on
    uint64_t ticket = 0;         // its valid entry in the queue
    bool idle = false;           // waits for a deadline
    bool passing = false;        // of spawn_verbs()
  };
  struct Due {
    uint64_t ns, ticket;
    int fiber;
    bool operator>(const Due& other) const { return ns != other.ns ? ns > other.ns : ticket > other.ticket; }
  };
  struct NodeStatus {
    uint32_t slow = 1;
    uint64_t points = 0, crash_at = 0, orphaned_ns = 0, crashed_ns = 0;
    bool crashed = false, dying = false;
    CrashTarget target;
    struct Pause {
      uint64_t from, to;
    };
    std::vector<Pause> pauses;
  };

  Fiber& add_fiber(int node, std::function<void()> body);
  static Fiber& prepare(Fiber& fiber);
  void wait_until(Fiber& fiber, uint64_t ns, bool idle);
  void hand_on();  // the running fiber is queued, or gone
  Fiber* next();
  uint64_t delay(uint64_t ns_max);
  // Where a fiber yields: a point of the list, or what says which one it is.
  struct Where {
    FaultPoint at;
    const volatile void* word = nullptr;
    const coherence::Batch* batch = nullptr;
    int op = 0;
  };
  static FaultPoint point_of(const Where&);
  void fault_point(const Where&);
  bool is_target(NodeStatus&, const Where&) const;
  void step(const Where&);
  void begin_verb(const Where&);
  [[noreturn]] void enter(Fiber* fiber);
  static void begin();
  void refill();

  std::function<void(int)> on_crash_;
  Random random_;
  const Pace pace_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> past_;                                     // of spawn_verbs(), ended
  std::unordered_map<const void*, std::vector<Fiber*>> parked_;  // by what they are parked on
  std::vector<NodeStatus> nodes_;
  std::vector<Crash> crashes_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> queue_;
  Fiber* running_ = nullptr;
  jmp_buf outside_;
  uint64_t now_ = 1'000'000, until_ = 0, tickets_ = 0, yields_ = 0, switches_ = 0, hash_ = 0;
  bool stop_ = false, calm_ = false;
};

class Scheduler::Calm {
 public:
  explicit Calm(Scheduler& s) : s_(s) { s_.calm_ = true; }
  ~Calm() { s_.calm_ = false; }
  Calm(const Calm&) = delete;

 private:
  Scheduler& s_;
};

// The one that runs; null between runs.
Scheduler* scheduler();

// Accesses left until the next yield; counted down by instrumented_atomics.cpp.
extern int64_t accesses_left;
void out_of_accesses(const volatile void* word);  // of a copy: null

}  // namespace sim
