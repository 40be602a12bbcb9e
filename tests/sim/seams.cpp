// The product's seams to the machine, a second time: coherence/base/os.hpp and verify.hpp over the scheduler, the
// transport's verbs one by one, and the C library's calls that would wait or must not be done at once.  Linked in place
// of base/os.cpp, base/verify.cpp and transport/shm/shm_memory.cpp; everything else is the product's.
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "coherence/base/failure_report.hpp"
#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/trace/flight_file.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "findings.hpp"
#include "mutation.hpp"
#include "scheduler.hpp"
#include "seams.hpp"

extern "C" {
void* __real_memcpy(void* to, const void* from, size_t bytes);
void* __wrap_memcpy(void* to, const void* from, size_t bytes);
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_munmap(void* at, size_t bytes);
int __wrap_munmap(void* at, size_t bytes);
int __real_sched_yield();
int __wrap_sched_yield();
}

namespace sim {

int joining_node = -1;
Batches batches;

namespace {

struct FileLock {
  int node, fd;
};
std::vector<FileLock> file_locks;

// What was unmapped in fibers: others may have it as their own, and peers' mappings are aliases.
struct Unmapped {
  void* at;
  size_t bytes;
};
std::vector<Unmapped> unmapped;

// Posted batches that are not complete, by a session's Memory, and by node.
struct Posted {
  int batches = 0, windows = 0;
};
std::map<const coherence::Memory*, Posted> under_way;
int under_way_of[coherence::kNodesMax];

}  // namespace

void free_locks_of(int node) {
  std::erase_if(file_locks, [node](const FileLock& l) { return l.node == node && __real_flock(l.fd, LOCK_UN) == 0; });
}

void unmap_all() {
  for (const Unmapped& one : std::exchange(unmapped, {})) __real_munmap(one.at, one.bytes);
}

void forget_batches() {
  batches = {};
  under_way.clear();
  std::fill(std::begin(under_way_of), std::end(under_way_of), 0);
}

InWindow::InWindow(const coherence::Memory& of) : memory_(of) { under_way[&memory_].windows++; }
InWindow::~InWindow() { under_way[&memory_].windows--; }

void note_request(coherence::NodeId self, const coherence::LineState& line) {
  batches.asked_for_leaving += line.op == coherence::LineOp::kReleasePosted && under_way_of[self.value] > 1;
}

}  // namespace sim

namespace coherence {
namespace {

constexpr uint64_t kSpinNs = 200;
constexpr int kSpinDoublings = 6;

bool in_fiber() { return sim::scheduler() && sim::scheduler()->in_fiber(); }

}  // namespace

void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, uint32_t ms) noexcept {
  if (sim::mutation == sim::Mutation::kLongSleeps) ms *= 100;
  if (in_fiber()) sim::scheduler()->park(&word, expected, ms * sim::kMs);
}

int futex_wake(const std::atomic<uint32_t>& word, int count) noexcept {
  return in_fiber() ? sim::scheduler()->wake(&word, count) : 0;
}

uint64_t monotonic_ns() noexcept { return sim::scheduler() ? sim::scheduler()->now() : 1; }

void nap(uint64_t ns) noexcept {
  if (in_fiber()) sim::scheduler()->sleep(ns, sim::FaultPoint::kSleep);
}

// A simulated server lives until its node crashes.
ProcessSight look_at_process(int32_t pid, const char*) noexcept {
  const bool simulated = pid >= sim::kFirstPid && sim::mutation != sim::Mutation::kNobodyWatches;
  if (simulated && sim::scheduler() && sim::scheduler()->crashed(pid - sim::kFirstPid))
    return {ProcessSight::Is::kGone};
  return {ProcessSight::Is::kThere, 1};
}

uint64_t pid_namespace() noexcept { return 1; }

// What a node leaves behind is looked at.
void give_memory_back(int, uint64_t, uint64_t) noexcept {}

// Nothing is recorded: a run is traced, and repeated.
FlightFile::~FlightFile() = default;
void FlightFile::create(const char*, NodeId, uint64_t, uint32_t) noexcept {}
FlightRing* FlightFile::ring(SessionId) noexcept { return nullptr; }
void flight_path(const char*, NodeId, uint64_t, char* out, size_t) noexcept { *out = 0; }

// There is no report.
FailureReport::FailureReport() noexcept : thread_(), place_(0) {}
FailureReport::~FailureReport() = default;
void FailureReport::Out::line(const Text&) noexcept {}

void SpinGuard::wait(const std::atomic<uint32_t>* fence) noexcept {
  // Outside fibers it is taken only when the product, broken on purpose, has left it so.
  if (!in_fiber()) return sim::object(sim::Checker::kLeaks, "a line's spinlock is held at rest");
  for (int i = 0; !take(); i++) {
    sim::scheduler()->spin(kSpinNs << (i < kSpinDoublings ? i : kSpinDoublings));
    if (i > kSpinDoublings && fence && fence->load(std::memory_order_relaxed)) return;
  }
}

void verify_failed(const char* expression, const char* file, int line) noexcept {
  const char* name = strrchr(file, '/');
  sim::give_up(sim::Checker::kProduct, "%s:%d: VERIFY(%s) failed", name ? name + 1 : file, line, expression);
}

void end_process(const char* why) noexcept { sim::give_up(sim::Checker::kProduct, "a process ends: %s", why); }

// --- the transport: as shm.  A batch travels, its verbs run in order with anything in between, and its completion
// travels back.  A READ that is not wanted may be done all the same, as verbs would.

namespace {

bool is_done(const Op& read, const Op& first) {
  return (in_fiber() && sim::scheduler()->random().one_in(4)) || wanted(read, first);
}

void run_verb(Op& op, const Op& first, std::byte* base, Counters& counters) {
  std::byte* const there = base + op.at.offset();
  auto* const word = reinterpret_cast<uint64_t*>(there);
  switch (op.verb) {
    case Verb::kRead:
      if (!is_done(op, first)) break;
      memcpy(op.local, there, op.bytes);
      counters.add(Counter::kReads);
      counters.add(Counter::kBytesRead, op.bytes);
      break;
    case Verb::kWrite:
      memcpy(there, op.local, op.bytes);
      counters.add(Counter::kWrites);
      counters.add(Counter::kBytesWritten, op.bytes);
      break;
    case Verb::kCas:
      op.old = *word;
      if (op.old == op.expect) *word = op.operand;
      counters.add(Counter::kCas);
      break;
    case Verb::kFaa:
      op.old = *word;
      *word += op.operand;
      counters.add(Counter::kFaa);
      break;
    case Verb::kLoad:
      op.old = *word;
      counters.add(Counter::kLoads);
      break;
  }
}

}  // namespace

void ShmMemory::run(Batch& batch) {
  counters_.add(Counter::kBatches);
  VERIFY(batch.to().value < kMemoryNodesMax);
  std::byte* const base = map_.base(batch.to());
  for (int i = 0; i < batch.size(); i++) {
    const int number = sim::verb_order(batch, i);
    Op& op = batch.op(number);
    if (in_fiber()) sim::scheduler()->verb(batch, number);
    if (sim::observer) sim::observer->about_to(op);
    if (sim::mutate_verb(batch, op, base)) continue;
    run_verb(op, batch.op(0), base, counters_);
    if (in_fiber()) sim::scheduler()->trace(op.old ^ uint64_t(op.verb) << 56);
  }
  if (in_fiber()) sim::scheduler()->verb(sim::FaultPoint::kCompletion);
  batch.state.store(BatchState::kDone, std::memory_order_release);
}

namespace {

// kEventFirst: what the batch would find is seen now; it happens later.
std::shared_ptr<Batch> split(Batch& batch, std::byte* base) {
  auto later = std::make_shared<Batch>(batch.to());
  for (int i = 0; i < batch.size(); i++) {
    Op& op = batch.op(i);
    later->op(later->load(op.at)) = op;
    if (op.verb != Verb::kRead && op.verb != Verb::kWrite) memcpy(&op.old, base + op.at.offset(), sizeof op.old);
  }
  return later;
}

}  // namespace

// Some are complete when this returns, as shm's all are; of the others, a fiber does what a network card would
// (transport.poll-until-done).  Both write the session's counters, which may so lose an addition.
void ShmMemory::post(Batch* const* batches, int count) {
  for (int i = 0; i < count; i++) {
    Batch& batch = *batches[i];
    if (!in_fiber() || !sim::scheduler()->late()) {
      run(batch);
      continue;
    }
    if (sim::mutation == sim::Mutation::kEventFirst) {
      auto later = split(batch, map_.base(batch.to()));
      batch.state.store(BatchState::kDone, std::memory_order_release);
      sim::scheduler()->spawn_verbs([memory = ShmMemory(*this), later]() mutable { memory.run(*later); });
      continue;
    }
    batch.state.store(BatchState::kPosted, std::memory_order_relaxed);
    sim::Posted& mine = sim::under_way[this];
    int& nodes = sim::under_way_of[sim::scheduler()->node()];
    sim::batches.at_once = std::max(sim::batches.at_once, ++mine.batches);
    if (mine.windows > 0) sim::batches.of_window = std::max(sim::batches.of_window, mine.batches);
    nodes++;
    sim::scheduler()->spawn_verbs([this, &batch, &mine, &nodes] {
      run(batch);
      mine.batches--;
      nodes--;
    });
  }
}

void ShmMemory::poll() {
  if (in_fiber()) sim::scheduler()->verb(sim::FaultPoint::kElsewhere);
}

}  // namespace coherence

// --- the C library

// Pages are not copied at a stroke.
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  constexpr size_t kAtAStroke = 512, kPiece = 256;
  if (bytes < kAtAStroke || !coherence::in_fiber()) return __real_memcpy(to, from, bytes);
  for (size_t done = 0; done < bytes; done += kPiece) {
    if (--sim::accesses_left < 0) sim::out_of_accesses(nullptr);
    const size_t piece = bytes - done < kPiece ? bytes - done : kPiece;
    __real_memcpy(static_cast<char*>(to) + done, static_cast<const char*>(from) + done, piece);
    if (sim::mutation == sim::Mutation::kNotValidated) sim::linger_in_copy();
  }
  return to;
}

// A fiber that waits for a file's lock lets the others go on.
int __wrap_flock(int fd, int operation) {
  const bool waits = coherence::in_fiber() && (operation & LOCK_NB) == 0 && operation != LOCK_UN;
  while (__real_flock(fd, waits ? operation | LOCK_NB : operation) != 0) {
    if (!waits || errno != EWOULDBLOCK) return -1;
    sim::scheduler()->sleep(sim::kMs, sim::FaultPoint::kElsewhere);
  }
  if (operation != LOCK_UN)
    sim::file_locks.push_back({coherence::in_fiber() ? sim::scheduler()->node() : sim::joining_node, fd});
  return 0;
}

int __wrap_close(int fd) {
  std::erase_if(sim::file_locks, [fd](const sim::FileLock& l) { return l.fd == fd; });
  return __real_close(fd);
}

// A node that does not join after all may be in the pool for a while, as its peers see it.
int __wrap_munmap(void* at, size_t bytes) {
  if (!coherence::in_fiber()) return __real_munmap(at, bytes);
  sim::unmapped.push_back({at, bytes});
  return 0;
}

// For a fiber that spins while the holder has lost its CPU.
int __wrap_sched_yield() {
  if (!coherence::in_fiber()) return __real_sched_yield();
  sim::scheduler()->yield(sim::FaultPoint::kElsewhere);
  return 0;
}
