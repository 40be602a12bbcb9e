// The arena: a node incarnation's shared file.
//
//   header | session slots | parked bitmap | grants in flight | hot pages | lines | frames | private memory
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/line/line.hpp"
#include "coherence/message/slots.hpp"
#include "coherence/message/wakeup.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/stats/hot_pages.hpp"

namespace coherence {

inline constexpr uint64_t kArenaMagic = 0x36414e4552414347;  // "GCARENA6"

struct ArenaSpec {
  uint32_t frames = 0;
  uint32_t sessions_max = 0;   // at most kSessionsMax; session ids are below it
  uint64_t private_bytes = 0;  // zero-filled, 4096-aligned
};

struct ArenaLayout {
  uint32_t frames, sessions_max;
  uint64_t private_bytes;
  uint64_t sessions_at, parked_at, in_flight_at, hot_at, lines_at, frames_at, private_at, bytes;
  // What comes before is small, and a peer that answered or asked may look at it a moment after the node has left: a
  // wakeup word, a bit of an inbox.  A peer touches what comes behind only for a message that the node waits for before
  // it leaves (node.memory-given-back).  The private memory at the end is small, too, and the layers above use it until
  // their processes end.
  uint64_t shared_until() const { return parked_at; }
};
ArenaLayout arena_layout(const ArenaSpec& spec);

struct ArenaHeader {
  uint64_t magic;
  uint64_t incarnation;
  ArenaLayout layout;
  // The worker's wakeup event: a process that publishes something for the worker signals it when the worker sleeps.
  alignas(64) std::atomic<uint32_t> wakeup;
  std::atomic<uint32_t> sleeping;
  std::atomic<uint32_t> sessions;  // in use
  std::atomic<uint32_t> sweeping;  // processes that drop dead nodes' bits (repair.drained-last)
  // What there is to do, as bits; set last, taken first.
  alignas(64) std::atomic<uint64_t> inbox_peers;  // bit p: inbox[p] has something
  std::atomic<uint32_t> parked_any;               // the parked bitmap (one bit per line) has something
  std::atomic<uint32_t> abandoned_any;
  std::atomic<uint64_t> abandoned[kInboxWords];  // request slots whose session left
  alignas(64) Inbox inbox[kNodesMax];
  alignas(64) WakeupEvent event[kWakeupEvents];  // Node::wake()
};

// The file of an incarnation's arena: `<pool>.node<N>.<incarnation>`.
void arena_path(const Pool& pool, NodeId node, uint64_t incarnation, char* out, size_t bytes);
void arena_path(const char* pool, NodeId node, uint64_t incarnation, char* out, size_t bytes);
// Removes the incarnation's files: its arena, its recorders.
void unlink_node_files(const Pool& pool, NodeId node, uint64_t incarnation) noexcept;

void ring(ArenaHeader& arena) noexcept;

}  // namespace coherence
