#include "far_member.hpp"

#include "coherence/transport/tcp/member/tcp_membership.hpp"
#include "mutation.hpp"
#include "scheduler.hpp"
#include "seams.hpp"

namespace sim {

using namespace coherence;  // NOLINT: the simulator speaks of nothing else

std::unique_ptr<Membership> FarMember::open(Pool& pool) {
  tcp::WorkerSignal& signal = *this;
  tcp::NodeWorker& worker = *this;
  tcp::Calls& calls = *this;
  auto membership =
      std::make_unique<tcp::TcpMembership>(pool, tcp::TcpMembership::Parts{mirror(), sayings(), signal, worker, calls});
  membership_ = membership.get();
  return membership;
}

// --- calls

Status FarMember::call(const tcp::CallFrame& frame, uint64_t* value, Problem* problem) {
  if (tool_ == nullptr) tool_ = authority_.dial(scheduler()->node());
  const Ways::CallBreaks breaks = ways_.call_breaks();
  if (breaks != Ways::CallBreaks::kNot) return call_broken(frame, breaks, problem);
  auto answer = std::make_shared<MemberAuthority::Answer>();
  ways_.carry_to(Scheduler::kNobody,
                 [&authority = authority_, tool = tool_, frame, answer] { authority.call(tool, frame, answer); });
  while (!answer->in) {
    if (!scheduler()->in_fiber()) return Errc::kUnreached;  // the run is over, and the process has died long ago
    ways_.wait_for_answer();
  }
  table_ = answer->table;
  if (value != nullptr) *value = answer->value;
  if (answer->error == Errc::kOk) return {};
  *problem = answer->problem;
  return answer->error;
}

// The caller hears that there is no answer, before or after the other side has seen that the link is over.
Status FarMember::call_broken(const tcp::CallFrame& frame, Ways::CallBreaks breaks, Problem* problem) {
  ways_.carry_to(Scheduler::kNobody, [&authority = authority_, tool = tool_, frame, breaks] {
    if (breaks == Ways::CallBreaks::kAfter) authority.call(tool, frame, std::make_shared<MemberAuthority::Answer>());
    authority.over(tool);
  });
  tool_.reset();
  table_.reset();
  for (int i = int(scheduler()->random().below(20)); i > 0; i--) ways_.wait_for_answer();
  if (tracing) trace("the outcome of a call is not known");
  if (mutation == Mutation::kUnknownLeaveCounts && frame.call == tcp::Call::kWithdraw) return {};
  abandons_ = frame.call == tcp::Call::kPublish;
  return problem->set(Errc::kUnreached, "memory node 0 gave no answer");
}

void FarMember::close() noexcept {
  if (tool_ == nullptr) return;
  ways_.carry_to(Scheduler::kNobody, [&authority = authority_, tool = tool_] { authority.over(tool); });
  tool_.reset();
  table_.reset();
}

// --- the network worker

Status FarMember::start(NodeId id, uint64_t incarnation, Problem*) {
  id_ = id;
  incarnation_ = incarnation;
  ways_.carry_to(Scheduler::kNobody, [self = shared_from_this()] { self->authority_.link_begins(self); });
  return {};
}

void FarMember::stop() noexcept {
  stopped_ = true;
  membership_ = nullptr;
  if (mutation == Mutation::kJoinAbandoned && abandons_) return;
  ways_.carry_to(Scheduler::kNobody, [self = shared_from_this()] { self->authority_.link_over(self.get()); });
}

void FarMember::table_comes(const tcp::Table& table) {
  if (!stopped_ && mirror().take(table)) ring_(*this);
}

void FarMember::signal() noexcept {
  if (!scheduler()->in_fiber()) return send_sayings();
  scheduler()->spawn_verbs(id_.value, [self = shared_from_this()] { self->send_sayings(); });
}

// They may overtake each other, and come again (tcp.sayings-are-state).
void FarMember::send_sayings() {
  if (stopped_) return;
  auto record = std::make_shared<tcp::SayingsRecord>(tcp::record_of(sayings()));
  const auto arrive = [&authority = authority_, id = id_, incarnation = incarnation_, record] {
    authority.says(id, incarnation, *record);
  };
  ways_.carry_to(Scheduler::kNobody, arrive);
  if (ways_.one_in(4)) ways_.carry_late(arrive);
}

}  // namespace sim
