// NodeParts: what the sessions of a node work with.  Node::join() sets it; only the roles of a session
// (coherence/session/) use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/line/features.hpp"
#include "coherence/line/line.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/member/membership.hpp"
#include "coherence/member/upcalls.hpp"
#include "coherence/message/slots.hpp"
#include "coherence/message/wakeup.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/stats/hot_pages.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

// A line was granted early by the node, and the batch is not complete.
constexpr uint8_t in_flight_of(NodeId granting) { return uint8_t(granting.value + 1); }

struct NodeParts {
  explicit NodeParts(Pool& of) : pool(of) {}

  Pool& pool;
  Membership* members = nullptr;
  Wakeup* wakeup = nullptr;
  NodeId id;
  uint64_t incarnation = 0;
  const std::atomic<uint32_t>* fence = nullptr;
  ArenaHeader* arena = nullptr;
  SessionSlot* sessions = nullptr;
  std::atomic<uint64_t>* parked = nullptr;    // bitmap over lines: requests parked there, for the worker to look after
  std::atomic<uint8_t>* in_flight = nullptr;  // over lines: in_flight_of() the granting node; 0: none
  HotPages* hot = nullptr;
  Line* lines = nullptr;
  std::byte* frames_base = nullptr;
  uint32_t frames = 0, sessions_max = 0;
  // Settings, of each process:
  static constexpr uint64_t kComeNs = 1'000'000;
  uint32_t lease_turns = 16;
  uint64_t come_ns = kComeNs;
  Features features = Features::all();
  FrameDirectory* directory = nullptr;
  LogHorizon* horizon = nullptr;
  PageRepair* repair = nullptr;
  std::atomic<uint32_t> sessions_here = 0;  // of this process: a lone one uses no arena between its messages

  bool fenced() const noexcept { return fence->load(std::memory_order_acquire) != 0; }  // Membership::fence()
  Line& line(uint32_t index) const noexcept { return lines[index]; }
  uint32_t index_of(const Line& line) const noexcept { return uint32_t(&line - lines); }
  std::byte* frame(const Line& line) const noexcept { return frames_base + uint64_t(index_of(line)) * kPageSize; }
  Registered frame_memory(const Line& line) const noexcept { return Registered(frame(line)); }
  RequestSlot& slot(uint16_t index) const noexcept {
    return sessions[index / kSlotsPerSession].slot[index % kSlotsPerSession];
  }
  // It can become so only while the line is being fetched.
  bool grant_in_flight(const Line& line) const noexcept {
    return in_flight[index_of(line)].load(std::memory_order_seq_cst) != 0;
  }
  bool grant_in_flight_from(const Line& line, NodeId node) const noexcept {
    return in_flight[index_of(line)].load(std::memory_order_seq_cst) == in_flight_of(node);
  }
  void ring_worker() const noexcept { ring(*arena); }
};

}  // namespace coherence
