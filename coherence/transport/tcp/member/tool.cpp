#include "coherence/transport/tcp/member/tool.hpp"

#include <unistd.h>

#include <utility>

#include "coherence/transport/net/address.hpp"

namespace coherence::tcp {

Tool::Tool(ToolLink::Spec spec, net::Credentials credentials, Log& log)
    : spec_(std::move(spec)), credentials_(std::move(credentials)), log_(log) {}

Tool::~Tool() { leave_inherited(); }

// Its destructor would write to the other process's connection, and change what that one waits for.
void Tool::leave_inherited() noexcept {
  if (pid_ == getpid()) return;
  (void)link_.release();  // NOLINT: not ours to end
  for (auto& link : further_) (void)link.release();
}

Result<ToolLink*> Tool::link(Problem* problem) {
  leave_inherited();
  if (link_ != nullptr && !link_->over()) return link_.get();
  close();  // the other memory nodes have the number of this one
  auto link = ToolLink::dial(spec_, credentials_, log_, problem);
  if (!link) return link.error();
  link_ = link.take();
  pid_ = getpid();
  return link_.get();
}

Result<ToolLink*> Tool::link_to(MemoryNodeId to, Problem* problem) {
  auto first = link(problem);
  if (!first || to == MemoryNodeId{0}) return first;
  std::unique_ptr<ToolLink>& further = further_[to.value];
  if (further != nullptr && !further->over()) return further.get();
  auto dialed = dial_further(to, problem);
  if (!dialed) return dialed.error();
  further = dialed.take();
  return further.get();
}

Result<std::unique_ptr<ToolLink>> Tool::dial_further(MemoryNodeId to, Problem* problem) {
  GCL_TRY(link_->call({.call = Call::kHeader}, nullptr, problem));  // for the table
  const Table& table = *link_->table();
  const char* const name = to.value < table.head.memory_nodes ? table.memory_node[to.value].address : "";
  if (*name == '\0')
    return problem->set(Errc::kUnreached, "memory node %u has not come to the pool", unsigned{to.value});
  ToolLink::Spec spec = spec_;
  spec.name = name;
  spec.to = to;
  spec.number = link_->number();
  auto address = net::Address::parse(name, problem);
  if (!address) return address.error();
  auto endpoints = address->resolve(problem);
  if (!endpoints) return endpoints.error();
  spec.at = *endpoints;
  return ToolLink::dial(spec, credentials_, log_, problem);
}

Status Tool::call(const CallFrame& call, uint64_t* value, Problem* problem) {
  auto to = link(problem);
  return to ? (*to)->call(call, value, problem) : to.error();
}

void Tool::close() noexcept {
  leave_inherited();
  link_.reset();
  for (auto& link : further_) link.reset();
}

void ToolMemory::post(Batch* const* batches, int count) {
  for (int i = 0; i < count; i++) {
    Problem problem;  // kFenced says enough to the caller
    const auto link = tool_.link_to(batches[i]->to(), &problem);
    if (!link || !(*link)->run(*batches[i], &problem))
      batches[i]->state.store(BatchState::kUnknown, std::memory_order_release);  // pairs with Batch::done()
  }
}

}  // namespace coherence::tcp
