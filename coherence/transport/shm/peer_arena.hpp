// PeerArena: another node's arena, mapped in this process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/message/slots.hpp"

namespace coherence {

class PeerArena {
 public:
  // Null: it left, or there is no memory or no descriptor for it.
  static PeerArena* map(const Pool& pool, NodeId node, uint64_t incarnation) noexcept;
  static PeerArena* alias(ArenaHeader& mapped);  // of a node in this process, which outlives it
  ~PeerArena();
  PeerArena(const PeerArena&) = delete;
  uint64_t incarnation() const { return incarnation_; }
  ArenaHeader& header() { return *header_; }
  RequestSlot* slot(uint32_t index);  // null: there is none
  // REQUIRES: there is such a line.
  std::byte* frame(uint32_t line);
  std::atomic<uint8_t>* in_flight(uint32_t line);
  PeerArena* next = nullptr;  // of those whose incarnations have left (Peers::forget())

 private:
  PeerArena() = default;
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;  // mapped by us; 0: not ours
  uint64_t incarnation_ = 0;
  ArenaHeader* header_ = nullptr;
};

}  // namespace coherence
