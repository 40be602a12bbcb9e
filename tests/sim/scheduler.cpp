#include "scheduler.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "seams.hpp"

namespace sim {
namespace {

constexpr size_t kStackBytes = 128 << 10, kGuardBytes = 4096;
constexpr int64_t kForever = INT64_MAX;

Scheduler* the_scheduler = nullptr;

// Stacks are kept for the runs to come.
std::vector<void*>& spare_stacks() {
  static std::vector<void*> stacks;
  return stacks;
}

void* take_stack() {
  if (!spare_stacks().empty()) {
    void* stack = spare_stacks().back();
    spare_stacks().pop_back();
    return stack;
  }
  void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED || mprotect(stack, kGuardBytes, PROT_NONE) != 0) perror("stack"), abort();
  return stack;
}

}  // namespace

int64_t accesses_left = kForever;
Observer* observer = nullptr;

Scheduler* scheduler() { return the_scheduler; }

void out_of_accesses(const volatile void* word) {
  accesses_left = kForever;
  if (the_scheduler && the_scheduler->in_fiber()) the_scheduler->yield_at(word);
}

Scheduler::Scheduler(uint64_t seed, const Pace& pace, int nodes)
    : random_(seed), pace_(pace), nodes_(size_t(nodes)), hash_(seed) {
  the_scheduler = this;
}

Scheduler::~Scheduler() {
  for (auto& fiber : fibers_) spare_stacks().push_back(fiber->stack);
  the_scheduler = nullptr;
}

Scheduler::Fiber& Scheduler::add_fiber(int node, std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->id = int(fibers_.size());
  fiber->node = node;
  fiber->body = std::move(body);
  fiber->stack = take_stack();
  fibers_.push_back(std::move(fiber));
  return prepare(*fibers_.back());
}

// To begin at its stack's end.
Scheduler::Fiber& Scheduler::prepare(Fiber& fiber) {
  getcontext(&fiber.entry);
  fiber.entry.uc_stack.ss_sp = fiber.stack;
  fiber.entry.uc_stack.ss_size = kStackBytes;
  fiber.entry.uc_link = nullptr;
  makecontext(&fiber.entry, &Scheduler::begin, 0);
  fiber.started = false;
  fiber.state = State::kWaiting;
  return fiber;
}

void Scheduler::spawn(int node, std::function<void()> body) {
  wait_until(add_fiber(node, std::move(body)), now_ + delay(pace_.wake_ns_max), false);
}

void Scheduler::spawn_verbs(int node, std::function<void()> body) {
  Fiber* fiber;
  if (past_.empty()) {
    fiber = &add_fiber(node, std::move(body));
    fiber->passing = true;
  } else {
    fiber = past_.back();
    past_.pop_back();
    fiber->node = node;
    fiber->body = std::move(body);
    prepare(*fiber);
  }
  wait_until(*fiber, now_ + delay(pace_.verb_ns_max), false);
}

// The first function on a fiber's stack.
void Scheduler::begin() {
  Scheduler& self = *the_scheduler;
  self.running_->body();
  self.running_->state = State::kEnded;
  if (self.running_->passing) self.past_.push_back(self.running_);
  self.hand_on();
}

Scheduler::Ended Scheduler::run(uint64_t until_ns) {
  until_ = until_ns;
  stop_ = false;
  if (_setjmp(outside_) == 0)
    if (Fiber* first = next()) enter(first);
  running_ = nullptr;
  accesses_left = kForever;
  if (stop_) return Ended::kStopped;
  const bool somebody =
      std::any_of(fibers_.begin(), fibers_.end(), [](const auto& f) { return f->state == State::kWaiting; });
  if (somebody) now_ = std::max(now_, until_ns);
  return somebody ? Ended::kLimit : Ended::kNobodyLeft;
}

bool Scheduler::everybody_waits() const {
  return std::all_of(fibers_.begin(), fibers_.end(),
                     [](const auto& f) { return f->state != State::kWaiting || f->idle; });
}

void Scheduler::pause_node(int node, uint64_t from, uint64_t ns) { nodes_[node].pauses.push_back({from, from + ns}); }

uint64_t Scheduler::paused_ns(int node, uint64_t from, uint64_t to) const {
  uint64_t sum = 0;
  for (const auto& pause : nodes_[node].pauses)
    if (pause.from < to && pause.to > from) sum += std::min(pause.to, to) - std::max(pause.from, from);
  return sum;
}

uint64_t Scheduler::delay(uint64_t ns_max) {
  uint64_t ns = 10 + random_.below(ns_max);
  if (random_.one_in(pace_.stall_one_in)) ns += random_.below(pace_.stall_ns_max);
  return ns;
}

void Scheduler::refill() { accesses_left = int64_t(1 + random_.below(2 * pace_.grain - 1)); }

// --- from fibers ---------------------------------------------------------------------------------------------------

// What the observer looks at does not count: the run goes on as it would without.
FaultPoint Scheduler::point_of(const Where& where) {
  if (where.batch) return observer ? observer->point_of(*where.batch, where.op) : FaultPoint::kElsewhere;
  if (where.word) return observer ? observer->point_of(where.word) : FaultPoint::kElsewhere;
  return where.at;
}

bool Scheduler::is_target(NodeStatus& node, const Where& where) const {
  if (point_of(where) != node.target.at || !(observer->phases() & only(node.target.phase))) return false;
  return node.target.skip-- == 0;
}

void Scheduler::fault_point(const Where& where) {
  ++yields_;
  if (running_->node < 0 || calm_) return;
  NodeStatus& node = nodes_[running_->node];
  const bool now = ++node.points == node.crash_at;
  if (!now && node.target.at == FaultPoint::kElsewhere) return;
  const int64_t left = std::exchange(accesses_left, kForever);
  const bool dies = now || (!node.dying && is_target(node, where));
  if (dies) crashes_.push_back({running_->node, point_of(where), observer ? observer->phases() : Phases{0}});
  accesses_left = left;
  if (!dies) return;
  node.target = {};
  node.dying = true;
  if (node.orphaned_ns == 0) return crash(running_->node);
  spawn(kNobody, [this, dying = running_->node, ns = node.orphaned_ns] {
    sleep(ns);
    crash(dying);
  });
  kill_self();
}

void Scheduler::yield(FaultPoint at) { step({at}); }
void Scheduler::yield_at(const volatile void* word) { step({FaultPoint::kCopy, word}); }

void Scheduler::step(const Where& where) {
  if (calm_) return refill();
  fault_point(where);
  const uint32_t slow = running_->node < 0 ? 1 : nodes_[running_->node].slow;
  wait_until(*running_, now_ + delay(pace_.step_ns_max) * slow, false);
  hand_on();
}

void Scheduler::verb(FaultPoint at) { begin_verb({at}); }
void Scheduler::verb(const coherence::Batch& batch, int op) {
  begin_verb({FaultPoint::kElsewhere, nullptr, &batch, op});
}

void Scheduler::begin_verb(const Where& where) {
  if (calm_) return;
  fault_point(where);
  const uint32_t slow = running_->node < 0 ? 1 : nodes_[running_->node].slow;
  wait_until(*running_, now_ + delay(pace_.verb_ns_max) * slow, false);
  hand_on();
}

void Scheduler::sleep(uint64_t ns, FaultPoint at) {
  fault_point({at});
  wait_until(*running_, now_ + ns + delay(pace_.step_ns_max), true);
  hand_on();
}

void Scheduler::spin(uint64_t ns) {
  fault_point({FaultPoint::kSpin});
  wait_until(*running_, now_ + ns, false);
  hand_on();
}

void Scheduler::park(const void* word, uint32_t expected, uint64_t ns) {
  yield(FaultPoint::kSleep);
  Fiber& self = *running_;
  if (__atomic_load_n(static_cast<const uint32_t*>(word), __ATOMIC_SEQ_CST) != expected) return;
  self.word = word;
  parked_[word].push_back(&self);
  const bool spurious = random_.one_in(pace_.spurious_one_in);
  wait_until(self, now_ + (spurious ? random_.below(ns) : ns) + delay(pace_.step_ns_max), true);
  hand_on();
  if (!self.word) return;  // woken
  self.word = nullptr;
  std::vector<Fiber*>& waiting = parked_[word];
  std::erase(waiting, &self);
  if (waiting.empty()) parked_.erase(word);
}

int Scheduler::wake(const void* word, int count) {
  yield(FaultPoint::kWake);
  const auto found = parked_.find(word);
  if (found == parked_.end()) return 0;
  std::vector<Fiber*>& waiting = found->second;  // in the order of their coming
  int woken = 0;
  size_t seen = 0;
  for (; seen < waiting.size() && woken < count; ++seen) {
    Fiber& fiber = *waiting[seen];
    if (fiber.state != State::kWaiting) continue;  // died meanwhile
    fiber.word = nullptr;
    wait_until(fiber, now_ + delay(pace_.wake_ns_max), false);
    woken++;
  }
  waiting.erase(waiting.begin(), waiting.begin() + std::ptrdiff_t(seen));
  if (waiting.empty()) parked_.erase(found);
  return woken;
}

void Scheduler::crash(int node) {
  NodeStatus& status = nodes_[node];
  if (status.crashed) return;
  status.crashed = status.dying = true;
  status.crashed_ns = now_;
  for (auto& fiber : fibers_)
    if (fiber->node == node && fiber->state == State::kWaiting) fiber->state = State::kDropped;
  if (on_crash_) on_crash_(node);
  if (running_ && running_->node == node) hand_on();
}

void Scheduler::kill_self() {
  running_->state = State::kDropped;
  hand_on();
}

void Scheduler::stop() { stop_ = true; }

// --- switching
// -------------------------------------------------------------------------------------------------------------

void Scheduler::wait_until(Fiber& fiber, uint64_t ns, bool idle) {
  fiber.ticket = ++tickets_;
  fiber.idle = idle;
  queue_.push({ns, fiber.ticket, fiber.id});
}

// Whose turn it is; null: back to run().
Scheduler::Fiber* Scheduler::next() {
  while (!stop_ && !queue_.empty()) {
    const Due due = queue_.top();
    Fiber& fiber = *fibers_[size_t(due.fiber)];
    if (fiber.ticket != due.ticket || fiber.state != State::kWaiting) {
      queue_.pop();
      continue;
    }
    if (due.ns > until_) return nullptr;
    queue_.pop();
    if (fiber.node >= 0)
      if (const uint64_t still = paused_ns(fiber.node, due.ns, due.ns + 1); still > 0) {
        uint64_t end = due.ns;
        for (const auto& pause : nodes_[size_t(fiber.node)].pauses)
          if (pause.from <= due.ns && pause.to > due.ns) end = std::max(end, pause.to);
        queue_.push({end, fiber.ticket, fiber.id});
        continue;
      }
    now_ = std::max(now_, due.ns);
    trace(now_ << 9 ^ uint64_t(fiber.id));
    return &fiber;
  }
  return nullptr;
}

// Not inlined: nothing of the caller's may live in registers across _setjmp.
[[gnu::noinline]] void Scheduler::hand_on() {
  Fiber* const self = running_;
  Fiber* const to = next();
  if (to != self) {
    ++switches_;
    if (self->state != State::kWaiting) enter(to);
    if (_setjmp(self->context) == 0) enter(to);
  }
  refill();
}

void Scheduler::enter(Fiber* fiber) {
  running_ = fiber;
  if (!fiber) _longjmp(outside_, 1);
  if (fiber->started) _longjmp(fiber->context, 1);
  fiber->started = true;
  refill();
  setcontext(&fiber->entry);
  abort();
}

}  // namespace sim
