#include "bench/paper/seams.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "coherence/base/failure_report.hpp"
#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/session.hpp"
#include "coherence/stats/hot_pages.hpp"
#include "coherence/trace/flight_file.hpp"

namespace paper {

Seams seams;

namespace {

constexpr int kLooksAtOnce = 64;  // at the clock, without waiting: then somebody spins
constexpr uint64_t kSpinNs = 200;
constexpr uint64_t kSameMomentNs = 100;  // to wake the worker of each peer takes a little

// What a fiber is about to do.
struct Errand {
  bool receives = false;  // the next peer it looks for is who sent the message
  int to = 0;             // its last message's
  uint64_t arrived = 0;   // when that was there
};
std::vector<Errand> errands;
std::map<const coherence::Memory*, uint32_t> completed;  // a session's batches

bool in_fiber() { return sim::scheduler() && sim::scheduler()->in_fiber(); }

Errand& errand() {
  const auto fiber = size_t(sim::scheduler()->fiber());
  if (fiber >= errands.size()) errands.resize(fiber + 1);
  return errands[fiber];
}

// Several of the same moment fly side by side.
void fly(int from, int to) {
  Network& network = *seams.network;
  const bool along = sim::scheduler()->now() - errand().arrived < kSameMomentNs;
  if (along)
    network.travel_along(from, to, network.costs().message_bytes);
  else
    network.travel(from, to, network.costs().message_bytes);
  errand().to = to;
  errand().arrived = sim::scheduler()->now();
}

}  // namespace

void forget_errands() {
  errands.clear();
  completed.clear();
}

}  // namespace paper

namespace coherence {

namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr int kEverybody = 1 << 30;

}  // namespace

void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, uint32_t ms) noexcept {
  if (!paper::in_fiber()) return;
  sim::scheduler()->park(&word, expected, ms * kMs);
  paper::pass(paper::seams.network->costs().local_hand_over_ns);
}

int futex_wake(const std::atomic<uint32_t>& word, int count) noexcept {
  return paper::in_fiber() ? sim::scheduler()->wake(&word, count) : 0;
}

// Who looks at the clock again and again while no time passes waits for it.
uint64_t monotonic_ns() noexcept {
  static uint64_t last = 0;
  static int looks = 0;
  if (!sim::scheduler()) return 1;
  const uint64_t now = sim::scheduler()->now();
  looks = now == last ? looks + 1 : 0;
  last = now;
  if (looks < paper::kLooksAtOnce || !paper::in_fiber()) return now;
  looks = 0;
  paper::pass(paper::kSpinNs);
  return sim::scheduler()->now();
}

void nap(uint64_t ns) noexcept {
  if (paper::in_fiber()) paper::pass(ns);
}

ProcessSight look_at_process(int32_t, const char*) noexcept { return {ProcessSight::Is::kThere, 1}; }
uint64_t pid_namespace() noexcept { return 1; }

// What a node leaves behind is looked at.
void give_memory_back(int, uint64_t, uint64_t) noexcept {}

// Nothing is recorded: a run is traced, and repeated.
FlightFile::~FlightFile() = default;
void FlightFile::create(const char*, NodeId, uint64_t, uint32_t) noexcept {}
FlightRing* FlightFile::ring(SessionId) noexcept { return nullptr; }
void flight_path(const char*, NodeId, uint64_t, char* out, size_t) noexcept { *out = 0; }

// Nobody is asked for a report.
FailureReport::FailureReport() noexcept : thread_(), place_(0) {}
FailureReport::~FailureReport() = default;
void FailureReport::Out::line(const Text&) noexcept {}

void SpinGuard::wait(const std::atomic<uint32_t>*) noexcept {
  while (!take()) paper::pass(paper::kSpinNs);
}

void verify_failed(const char* expression, const char* file, int line) noexcept {
  fprintf(stderr, "%s:%d: VERIFY(%s) failed\n", file, line, expression);
  abort();
}

// --- the transport

namespace {

paper::Network::Verb verb_of(const Op& op) {
  const uint64_t page = paper::seams.network->page_bytes(op.bytes);
  switch (op.verb) {
    case Verb::kRead:
      return {false, 0, page};  // wanted or not (A3)
    case Verb::kWrite:
      return {false, page, 0};
    case Verb::kCas:
      return {true, 16, 8};
    case Verb::kFaa:
      return {true, 8, 8};
    case Verb::kLoad:
      return {false, 0, 8};
  }
  return {};
}

void do_verb(Op& op, std::byte* base) {
  std::byte* const there = base + op.at.offset();
  auto* const word = reinterpret_cast<uint64_t*>(there);
  const size_t bytes = paper::seams.network ? paper::seams.network->page_bytes(op.bytes) : op.bytes;
  if (op.verb == Verb::kRead) memcpy(op.local, there, bytes);
  if (op.verb == Verb::kWrite) memcpy(there, op.local, bytes);
  if (op.verb != Verb::kCas && op.verb != Verb::kFaa && op.verb != Verb::kLoad) return;
  op.old = *word;
  if (op.verb == Verb::kFaa) *word += op.operand;
  if (op.verb == Verb::kCas && op.old == op.expect) *word = op.operand;
}

}  // namespace

void ShmMemory::run(Batch& batch) {
  counters_.add(Counter::kBatches);
  std::byte* const base = map_.base(batch.to());
  const auto all = [&] {
    for (int i = 0; i < batch.size(); i++) do_verb(batch.op(i), base);
  };
  if (!paper::in_fiber()) {
    all();
  } else {
    std::vector<paper::Network::Verb> verbs;
    for (int i = 0; i < batch.size(); i++) verbs.push_back(verb_of(batch.op(i)));
    paper::Network& network = *paper::seams.network;
    network.batch(sim::scheduler()->node(), network.compute() + batch.to().value, verbs, all);
  }
  batch.state.store(BatchState::kDone, std::memory_order_release);
}

// A fiber does what the NIC would.
void ShmMemory::post(Batch* const* batches, int count) {
  for (int i = 0; i < count; i++) {
    Batch& batch = *batches[i];
    if (!paper::in_fiber()) {
      run(batch);
      continue;
    }
    batch.state.store(BatchState::kPosted, std::memory_order_relaxed);
    paper::seams.crews[size_t(sim::scheduler()->node())].run([this, &batch] {
      run(batch);
      paper::completed[this]++;
      sim::scheduler()->wake(&paper::completed[this], kEverybody);
    });
  }
}

void ShmMemory::poll() {
  if (!paper::in_fiber()) return;
  const uint32_t& count = paper::completed[this];
  sim::scheduler()->park(&count, count, kMs);
}

// --- messages

// Of a grant, the page; told before it is copied into the asker's frame.
void HotPages::count(PageId, PageMessage message, const std::atomic<uint32_t>*) noexcept {
  if (message != PageMessage::kPageSent || !paper::in_fiber()) return;
  paper::Network& network = *paper::seams.network;
  network.carry(sim::scheduler()->node(), paper::errand().to, network.gcl());
  paper::errand().arrived = sim::scheduler()->now();
}
uint32_t HotPages::top(HotPage*, uint32_t, const std::atomic<uint32_t>*) noexcept { return 0; }
void HotPages::reset(const std::atomic<uint32_t>*) noexcept {}

}  // namespace coherence

// NOLINTBEGIN: the names are the linker's
using coherence::Line;
using coherence::NodeId;
using coherence::Session;

using Peer = coherence::Result<coherence::PeerArena*>;
Peer real_peer(coherence::Node*, NodeId) noexcept asm("__real__ZN9coherence4Node4peerENS_6NodeIdE");
Peer met_peer(coherence::Node*, NodeId) noexcept asm("__wrap__ZN9coherence4Node4peerENS_6NodeIdE");
void real_receive(Session*, NodeId, uint16_t) noexcept asm("__real__ZN9coherence7Session7receiveENS_6NodeIdEt");
void met_receive(Session*, NodeId, uint16_t) noexcept asm("__wrap__ZN9coherence7Session7receiveENS_6NodeIdEt");
void real_serve(Session*, Line&, bool) noexcept asm("__real__ZN9coherence7Session12serve_parkedERNS_4LineEb");
void met_serve(Session*, Line&, bool) noexcept asm("__wrap__ZN9coherence7Session12serve_parkedERNS_4LineEb");
// NOLINTEND

Peer met_peer(coherence::Node* node, NodeId to) noexcept {
  if (paper::in_fiber()) {
    if (paper::errand().receives)
      paper::errand().receives = false;
    else
      paper::fly(node->id().value, to.value);
  }
  return real_peer(node, to);
}

void met_receive(Session* self, NodeId from, uint16_t slot) noexcept {
  const int node = self->node().id().value;
  paper::seams.crews[size_t(node)].run([=] {
    paper::seams.network->handle(node);
    paper::errand().receives = true;
    real_receive(self, from, slot);
  });
}

void met_serve(Session* self, Line& line, bool worker) noexcept {
  paper::seams.crews[self->node().id().value].run([=, at = &line] { real_serve(self, *at, worker); });
}
