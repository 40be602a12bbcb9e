// MemoryRoutes: a node's links to memory nodes: batches go out as they are posted to the Port, and what came of them
// goes back there.
//
// tcp.answers-have-room: Of a memory node, batches whose results together may be longer than its window are not under
// way at once: so it never has to wait before it answers.  Those in excess stay in the Port, in order.  A part of the
// window is left to what a memory node sends beside results (kOtherBytesMax).
//
// One thread.  Its process has the node's arena and the Port at the same addresses as the sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/links.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/base/route.hpp"
#include "coherence/transport/tcp/memory/direct_path.hpp"
#include "coherence/transport/tcp/memory/entry_queue.hpp"
#include "coherence/transport/tcp/memory/port.hpp"

namespace coherence::tcp {

class MemoryRoutes final : public WorkSource, private PathUser {
 public:
  // All outlive it.
  MemoryRoutes(Port&, net::Links&, Log&);
  // Ends all links.  Batches that have no result, and those that are posted later, have no known outcome.
  ~MemoryRoutes();
  MemoryRoutes(const MemoryRoutes&) = delete;

  // A memory node, which is connected to from the next pass on.  Batches to others have no known outcome.
  Status add(MemoryNodeId, const net::Endpoints&, Problem*);
  // Null: there is none, or it is over.
  net::Link* link(MemoryNodeId id) const noexcept { return route_[id.value].link; }
  // Ends the links that there are: what is under way, or posted later, has no known outcome.
  void end(const char* reason) noexcept;
  // Hears of the link to memory node 0 what is not about batches, and when it is over.  It outlives this.
  void set_other(Route* other) noexcept { other_ = other; }
  // By which all batches go, of memory nodes that are added later.  It outlives this.
  void set_path(DirectPath* path) noexcept { path_ = path; }
  // Whether batches reach the memory node now, and what came of them comes back.
  bool reaches(MemoryNodeId id) const noexcept;

  void take() override;
  bool any() noexcept override { return port_.any_posted() || (path_ != nullptr && path_->keeps_awake()); }

 private:
  // To one memory node.
  struct MemoryRoute final : Route {
    MemoryRoutes* of = nullptr;
    net::Link* link = nullptr;  // null: not there, or over
    EntryQueue posted, sent;
    uint64_t awaited = 0;  // bytes that the results of `sent` take at most
    uint32_t next_tag = 0;
    void frame(net::Link&, uint16_t type, std::span<const std::byte> payload) override;
    void begun(net::Link&) override;
    void disconnected(net::Link&) override;
    void reconnected(net::Link&) override;
    void room(net::Link&) override;
    void over(net::Link&) override;
  };
  Route* other(net::Link& link) const noexcept { return link.peer().id == 0 ? other_ : nullptr; }
  void send(MemoryRoute&);
  bool send_first(MemoryRoute&);
  bool send_frame(MemoryRoute&, PortEntry&);
  void opened(MemoryNodeId id) override { send(route_[id.value]); }
  void completed(MemoryNodeId) override;
  void broken(MemoryNodeId, const char* why) override;
  void finish(PortEntry&, bool known);
  void give_up(MemoryRoute&);

  Port& port_;
  net::Links& links_;
  Log& log_;
  Route* other_ = nullptr;
  DirectPath* path_ = nullptr;  // null: batches go as frames
  MemoryRoute route_[kMemoryNodesMax];
  const std::unique_ptr<std::byte[]> frame_;  // of the request that is being sent
};

}  // namespace coherence::tcp
