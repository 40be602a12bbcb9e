// FlightFile: where a node's flight rings lie: a file beside its arena, one ring per session slot.
//
//   `<pool>.node<N>.<incarnation>.flight`:  header | ring of slot 0 | ring of slot 1 | ...
//
// The file takes memory only for slots that were ever used.  A ring's memory is taken when the first session of the
// slot begins, never by an event: a full tmpfs is a session without a recorder, not a SIGBUS.  The node makes the file:
// one that another account had made in its place, in a directory of all, that account could cut off.  The file outlives
// its processes, as the arena does, and is unlinked when the node leaves in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/trace/flight_ring.hpp"

namespace coherence {

inline constexpr uint64_t kFlightMagic = 0x31544847494c4647;  // "GFLIGHT1", whose last character is the version
inline constexpr uint64_t kFlightHeaderBytes = 4096;

struct FlightHeader {
  uint64_t magic;
  uint64_t incarnation;
  uint32_t sessions;     // rings
  uint32_t event_bytes;  // of another version of this code, perhaps
  uint32_t events;       // of a ring
  uint8_t node;
};

constexpr uint64_t flight_ring_at(uint32_t session) {
  return kFlightHeaderBytes + uint64_t{session} * sizeof(FlightRing);
}

void flight_path(const char* pool, NodeId node, uint64_t incarnation, char* out, size_t bytes) noexcept;

class FlightFile {
 public:
  FlightFile() = default;
  ~FlightFile();
  FlightFile(const FlightFile&) = delete;
  // Whatever keeps it from being made: then there are no rings.
  void create(const char* path, NodeId node, uint64_t incarnation, uint32_t sessions) noexcept;
  // The slot's ring, all of its memory taken; null: there is none.  Needs a descriptor for a moment, and keeps none.
  FlightRing* ring(SessionId session) noexcept;

 private:
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  uint32_t sessions_ = 0;
  char path_[600] = "";
};

}  // namespace coherence
