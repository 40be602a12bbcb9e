// SendWindow: the frames of one side that are not acknowledged, as the bytes that are sent, in a ring.
//
// Positions in the stream: acknowledged <= sent <= queued.  When a connection is replaced, what is sent begins again at
// the first frame that the other side has not received.
#pragma once

#include <sys/uio.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "coherence/transport/net/frame.hpp"

namespace coherence::net {

class SendWindow {
 public:
  static constexpr uint32_t kBytesMin = 4096, kBytesMax = 1u << 30;
  static constexpr bool fits(uint32_t bytes) {
    return std::has_single_bit(bytes) && bytes >= kBytesMin && bytes <= kBytesMax;
  }
  // REQUIRES: fits(bytes).  False: no memory.
  bool open(uint32_t bytes) noexcept;

  uint64_t room() const noexcept { return bytes_ - (queued_ - acked_); }
  bool room_for(size_t payload) const noexcept {
    return payload <= kPayloadMax && frame_bytes(uint32_t(payload)) <= room();
  }
  // REQUIRES: room for `payload`, which is what the pieces have together.
  void queue(uint16_t type, std::span<const std::span<const std::byte>> pieces, uint32_t payload,
             uint64_t ack) noexcept;
  bool empty() const noexcept { return queued_ == acked_; }
  // Numbers of frames: the last that was queued; all up to this one are acknowledged.
  uint64_t last_queued() const noexcept { return next_ - 1; }
  uint64_t last_acknowledged() const noexcept { return first_ - 1; }

  // Frees the frames up to `number`.  False: no such frame was sent on this connection, or before it.
  bool acknowledge(uint64_t number) noexcept;
  // A new connection, whose other side has received the frames up to `number`: sending begins behind it.  False: that
  // one was never sent, or a later one was acknowledged.
  bool rewind(uint64_t number) noexcept;

  bool between_frames() const noexcept { return sent_ == boundary_; }
  bool unsent() const noexcept { return sent_ != queued_; }
  // What is to be sent, or the rest of the frame that is sent in part; in at most two pieces; how many.
  int unsent(iovec* pieces) const noexcept { return pieces_of(sent_, queued_, pieces); }
  int rest_of_frame(iovec* pieces) const noexcept { return pieces_of(sent_, boundary_, pieces); }
  // REQUIRES: no more than unsent() said.
  void sent(size_t bytes) noexcept;

 private:
  void free_up_to(uint64_t number) noexcept;
  uint32_t bytes_at(uint64_t position) const noexcept;  // of the frame there
  int pieces_of(uint64_t from, uint64_t to, iovec* pieces) const noexcept;
  void put(const void* from, size_t bytes) noexcept;

  std::unique_ptr<std::byte[]> ring_;
  uint32_t bytes_ = 0;
  uint64_t acked_ = 0, sent_ = 0, queued_ = 0;  // positions
  uint64_t boundary_ = 0;                       // where the frame ends that is sent in part; sent_: there is none
  uint64_t first_ = 1;                          // number of the frame at acked_
  uint64_t sending_ = 1;                        // of the first that is not wholly sent on this connection
  uint64_t ever_sent_ = 0;                      // of the last that was wholly sent on any connection
  uint64_t next_ = 1;                           // of the frame that is queued next
};

}  // namespace coherence::net
