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
#include "coherence/member/node.hpp"
#include "coherence/session/message_server.hpp"
#include "coherence/trace/flight_file.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_messenger.hpp"

namespace paper {

Seams seams;

namespace {

constexpr int kLooksAtOnce = 64;  // at the clock, without waiting: more is a spin
constexpr uint64_t kSpinNs = 200, kMs = 1'000'000;
constexpr int kEverybody = 1 << 30;
constexpr uint64_t kSameMomentNs = 100;  // to wake the worker of each peer takes a little

std::vector<uint64_t> errands;                           // when the last message of each fiber was there
std::map<const coherence::Memory*, uint32_t> completed;  // a session's batches

bool in_fiber() { return sim::scheduler() && sim::scheduler()->in_fiber(); }

uint64_t& arrived() {
  const auto fiber = size_t(sim::scheduler()->fiber());
  if (fiber >= errands.size()) errands.resize(fiber + 1);
  return errands[fiber];
}

// Several of the same moment fly side by side.
void fly(int from, int to) {
  Network& network = *seams.network;
  const bool along = sim::scheduler()->now() - arrived() < kSameMomentNs;
  if (along)
    network.travel_along(from, to, network.costs().message_bytes);
  else
    network.travel(from, to, network.costs().message_bytes);
  arrived() = sim::scheduler()->now();
}

// It has something to look at, whether it sleeps or polls.
void call_worker(size_t node) {
  if (!in_fiber() || node >= seams.workers.size()) return;
  seams.workers[node].node->ring();
  sim::scheduler()->wake(&completed[seams.workers[node].memory], kEverybody);
}

}  // namespace

void forget_errands() {
  errands.clear();
  completed.clear();
}

}  // namespace paper

namespace coherence {

void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, uint32_t ms) noexcept {
  if (!paper::in_fiber()) return;
  sim::scheduler()->park(&word, expected, ms * paper::kMs);
  paper::pass(paper::seams.network->costs().local_hand_over_ns);
}

int futex_wake(const std::atomic<uint32_t>& word, int count) noexcept {
  return paper::in_fiber() ? sim::scheduler()->wake(&word, count) : 0;
}

// A fiber that looks at the clock again and again while no time passes waits for it.
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

void end_process(const char* why) noexcept {
  fprintf(stderr, "%s\n", why);
  abort();
}

}  // namespace coherence

// --- the transport

namespace paper {
namespace {

using coherence::Batch;
using coherence::NodeId;
using coherence::Op;
using coherence::Verb;

Network::Verb verb_of(const Op& op) {
  const uint64_t page = seams.network->page_bytes(op.bytes);
  switch (op.verb) {
    case Verb::kRead:
      return {false, 0, page};  // wanted or not (paper.unwanted-read-paid)
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
  const size_t bytes = seams.network ? seams.network->page_bytes(op.bytes) : op.bytes;
  if (op.verb == Verb::kRead) memcpy(op.local, there, bytes);
  if (op.verb == Verb::kWrite) memcpy(there, op.local, bytes);
  if (op.verb != Verb::kCas && op.verb != Verb::kFaa && op.verb != Verb::kLoad) return;
  op.old = *word;
  if (op.verb == Verb::kFaa) *word += op.operand;
  if (op.verb == Verb::kCas && op.old == op.expect) *word = op.operand;
}

class NetworkMemory final : public coherence::Memory {
 public:
  NetworkMemory(coherence::MemoryMap& map, coherence::Counters& counters) : map_(map), counters_(counters) {}

  // A fiber does what the NIC would.
  void post(Batch* const* batches, int count) override {
    for (int i = 0; i < count; i++) {
      Batch& batch = *batches[i];
      if (!in_fiber()) {
        run(batch);
        continue;
      }
      batch.state.store(coherence::BatchState::kPosted, std::memory_order_relaxed);
      seams.crews[size_t(sim::scheduler()->node())].run([this, &batch] {
        run(batch);
        completed[this]++;
        sim::scheduler()->wake(&completed[this], kEverybody);
      });
    }
  }
  void poll() override {
    if (!in_fiber()) return;
    const uint32_t& count = completed[this];
    sim::scheduler()->park(&count, count, kMs);
  }

 private:
  void run(Batch& batch) {
    counters_.add(coherence::Counter::kBatches);
    std::byte* const base = map_.base(batch.to());
    const auto all = [&] {
      for (int i = 0; i < batch.size(); i++) do_verb(batch.op(i), base);
    };
    if (!in_fiber()) {
      all();
    } else {
      std::vector<Network::Verb> verbs;
      for (int i = 0; i < batch.size(); i++) verbs.push_back(verb_of(batch.op(i)));
      Network& network = *seams.network;
      network.batch(sim::scheduler()->node(), network.compute() + batch.to().value, verbs, all);
    }
    batch.state.store(coherence::BatchState::kDone, std::memory_order_release);
  }
  coherence::MemoryMap& map_;
  coherence::Counters& counters_;
};

// The fiber that sends a message travels with it; what arrives is handled by a fiber of its own
// (paper.asynchronous-completions).
class NetworkMessenger final : public coherence::Messenger {
 public:
  NetworkMessenger(coherence::NodeParts& node, coherence::Counters& counters) : node_(node), shm_(node, counters) {}
  void ask(NodeId to, uint16_t slot, coherence::PageId page) noexcept override {
    if (in_fiber()) fly(node_.id.value, to.value);
    shm_.ask(to, slot, page);
    call_worker(to.value);
  }
  bool reach_all() noexcept override { return shm_.reach_all(); }
  bool receive(coherence::RequestHandler&) noexcept override {
    struct Later final : coherence::RequestHandler {
      explicit Later(size_t at) : node(at) {}
      void receive(NodeId from, uint16_t slot) noexcept override {
        seams.crews[node].run([at = node, from, slot] {
          seams.network->handle(int(at));
          seams.workers[at].handler->receive(from, slot);
          call_worker(at);
        });
      }
      const size_t node;
    } later(node_.id.value);
    return shm_.receive(later);
  }
  bool take_request(NodeId from, uint16_t slot, coherence::PeerRequest* request,
                    coherence::PageId* page) noexcept override {
    return shm_.take_request(from, slot, request, page);
  }
  uint32_t reply(const coherence::PeerRequest& request, const coherence::Reply& reply) noexcept override {
    if (in_fiber()) fly(node_.id.value, request.from);
    if (in_fiber() && carries_page(reply.kind)) {  // before it is copied into the requester's frame
      Network& network = *seams.network;
      network.carry(node_.id.value, request.from, network.gcl());
      arrived() = sim::scheduler()->now();
    }
    return shm_.reply(request, reply);
  }
  void grant_complete(NodeId to, uint8_t incarnation, uint32_t line) noexcept override {
    if (in_fiber()) fly(node_.id.value, to.value);
    shm_.grant_complete(to, incarnation, line);
    call_worker(to.value);
  }

 private:
  const coherence::NodeParts& node_;
  coherence::ShmMessenger shm_;
};

class NetworkTransport final : public coherence::ShmTransport {
 public:
  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts& node, coherence::Counters& counters) override {
    return std::make_unique<NetworkMemory>(coherence::MappedPool::of(node.pool), counters);
  }
  std::unique_ptr<coherence::Messenger> open_messenger(coherence::NodeParts& node,
                                                       coherence::Counters& counters) override {
    return std::make_unique<NetworkMessenger>(node, counters);
  }
};

}  // namespace

coherence::Transport& network_transport() {
  static NetworkTransport transport;
  return transport;
}

}  // namespace paper

// NOLINTBEGIN: the names are the linker's
using coherence::Line;
using coherence::MessageServer;

void real_serve(MessageServer*, Line&, bool) noexcept
    asm("__real__ZN9coherence13MessageServer12serve_parkedERNS_4LineEb");
void met_serve(MessageServer*, Line&, bool) noexcept
    asm("__wrap__ZN9coherence13MessageServer12serve_parkedERNS_4LineEb");
void real_complete(MessageServer*, int) noexcept asm("__real__ZN9coherence13MessageServer8completeEi");
void met_complete(MessageServer*, int) noexcept asm("__wrap__ZN9coherence13MessageServer8completeEi");
// NOLINTEND

void met_serve(MessageServer*, Line& line, bool) noexcept {
  const auto node = size_t(sim::scheduler()->node());
  paper::seams.crews[node].run([at = &line, node] {
    real_serve(paper::seams.workers[node].server, *at, true);
    paper::call_worker(node);
  });
}

// A session completes its own operations itself.
void met_complete(MessageServer* self, int place) noexcept {
  const auto node = size_t(sim::scheduler()->node());
  if (self != paper::seams.workers[node].server) return real_complete(self, place);
  paper::seams.crews[node].run([self, place, node] {
    real_complete(self, place);
    paper::call_worker(node);
  });
}
