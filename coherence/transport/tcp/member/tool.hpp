// Tool: how the processes of a server, or a program, reach memory nodes beside the network worker: by a ToolLink to
// number 0, and one to each other memory node that it has batches for, for as long as they are needed.
//
// tcp.tool-of-one-process: A link is of the process that dialed it.  Another one that was forked meanwhile, and
//     uses the same Tool, dials its own, and leaves what it inherited as it is.  So a process that forks others for
//     long closes before.
//
// One thread of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/tcp/member/calls.hpp"
#include "coherence/transport/tcp/member/tool_link.hpp"

namespace coherence::tcp {

class Tool final : public Calls {
 public:
  // `log` outlives it.
  Tool(ToolLink::Spec spec, net::Credentials credentials, Log& log);
  ~Tool();
  Tool(const Tool&) = delete;

  // To memory node 0.  It is dialed if there is none.
  Result<ToolLink*> link(Problem*);
  // To any: where the others are, memory node 0 has said.
  Result<ToolLink*> link_to(MemoryNodeId, Problem*);
  Status call(const CallFrame& call, uint64_t* value, Problem* problem) override;
  const Table* table() const noexcept override { return link_ != nullptr ? link_->table() : nullptr; }
  // Of the pool, for links from now on.
  void set_cluster(uint64_t pool_id) noexcept { spec_.cluster = pool_id; }
  // Whose waits end sooner; of this process.
  void set_interrupts(Interrupts* interrupts) noexcept { spec_.interrupts = interrupts; }
  const char* name() const noexcept { return spec_.name.c_str(); }
  void close() noexcept override;

 private:
  void leave_inherited() noexcept;
  Result<std::unique_ptr<ToolLink>> dial_further(MemoryNodeId, Problem*);
  ToolLink::Spec spec_;
  const net::Credentials credentials_;
  Log& log_;
  std::unique_ptr<ToolLink> link_;
  std::unique_ptr<ToolLink> further_[kMemoryNodesMax];
  pid_t pid_ = 0;
};

// The memory of a pool by a Tool: for a process that looks at it, or repairs it alone (tcp.tools-look).  A batch is
// done when post() returns.
class ToolMemory final : public Memory {
 public:
  // Outlives it.
  explicit ToolMemory(Tool& tool) : tool_(tool) {}
  using Memory::post;
  void post(Batch* const* batches, int count) override;
  void poll() override {}

 private:
  Tool& tool_;
};

}  // namespace coherence::tcp
