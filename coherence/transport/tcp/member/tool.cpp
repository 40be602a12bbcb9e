#include "coherence/transport/tcp/member/tool.hpp"

#include <unistd.h>

#include <utility>

namespace coherence::tcp {

Tool::Tool(ToolLink::Spec spec, net::Credentials credentials, Log& log)
    : spec_(std::move(spec)), credentials_(std::move(credentials)), log_(log) {}

Tool::~Tool() { leave_inherited(); }

// Its destructor would write to the other process's connection, and change what that one waits for.
void Tool::leave_inherited() noexcept {
  if (link_ != nullptr && owner_ != getpid()) (void)link_.release();  // NOLINT: not ours to end
}

Result<ToolLink*> Tool::link(Problem* problem) {
  leave_inherited();
  if (link_ != nullptr && !link_->over()) return link_.get();
  link_.reset();
  auto link = ToolLink::dial(spec_, credentials_, log_, problem);
  if (!link) return link.error();
  link_ = link.take();
  owner_ = getpid();
  return link_.get();
}

Status Tool::call(const CallFrame& call, uint64_t* value, Problem* problem) {
  auto to = link(problem);
  return to ? (*to)->call(call, value, problem) : to.error();
}

void Tool::close() noexcept {
  leave_inherited();
  link_.reset();
}

void ToolMemory::post(Batch* const* batches, int count) {
  for (int i = 0; i < count; i++) {
    Problem problem;  // kFenced says enough to who asked
    const auto link = tool_.link(&problem);
    if (!link || !(*link)->run(*batches[i], &problem))
      batches[i]->state.store(BatchState::kUnknown, std::memory_order_release);  // pairs with Batch::done()
  }
}

}  // namespace coherence::tcp
