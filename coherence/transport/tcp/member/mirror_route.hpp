// MirrorRoute: what a node's network worker does with members: the table that memory node 0 sends goes into the Mirror,
// and what the node says goes out (tcp.sayings-are-state).
//
// When the link to memory node 0 is over, this node is cut off, and no page may be touched here any more: the fence
// goes up in the Mirror.
//
// One thread, the worker's.
//
//   MirrorRoute members(mirror, sayings, worker->memory(), &changed, log);
//   worker->memory().set_other(&members);
//   worker->add(members);
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/base/route.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"
#include "coherence/transport/tcp/member/node_worker.hpp"
#include "coherence/transport/tcp/member/sayings.hpp"
#include "coherence/transport/tcp/memory/memory_routes.hpp"

namespace coherence::tcp {

class MirrorRoute final : public Route, public WorkSource {
 public:
  // All outlive it.
  MirrorRoute(Mirror&, Sayings&, MemoryRoutes&, MembersChanged&, Log&);
  MirrorRoute(const MirrorRoute&) = delete;

  void frame(net::Link&, uint16_t type, std::span<const std::byte> payload) override;
  void begun(net::Link&) override { take(); }
  void room(net::Link&) override;
  void over(net::Link&) override;

  void take() override;
  bool any() noexcept override { return !waits_ && sayings_.changes() != sent_; }

 private:
  Mirror& mirror_;
  Sayings& sayings_;
  MemoryRoutes& memory_;
  MembersChanged& changed_;
  Log& log_;
  uint64_t sent_ = 0;   // Sayings::changes()
  bool waits_ = false;  // for room in the link's window
  const std::unique_ptr<Table> table_;
};

}  // namespace coherence::tcp
