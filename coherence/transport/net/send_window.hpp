// SendWindow: the frames of one side that are not acknowledged, as the bytes that are sent, in a ring.
//
// Three positions of the stream: acknowledged <= sent <= queued.  After a connection is replaced, what is sent begins
// again at the first frame that the other side has not received.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "coherence/base/result.hpp"
#include "coherence/transport/net/frame.hpp"

namespace coherence::net {

class SendWindow {
 public:
  // `bytes`: a power of two, at least kWindowMin.  False: no memory.
  static constexpr uint32_t kWindowMin = 4096;
  bool open(uint32_t bytes) noexcept;

  bool room_for(uint32_t payload) const noexcept { return frame_bytes(payload) <= bytes_ - (queued_ - acked_); }
  // REQUIRES: room.
  void queue(uint16_t type, std::span<const std::span<const std::byte>> pieces, uint32_t payload,
             uint64_t ack) noexcept;
  bool empty() const noexcept { return queued_ == acked_; }
  uint64_t first_unacknowledged() const noexcept { return first_; }  // its number; last_queued() + 1: there is none
  uint64_t last_queued() const noexcept { return next_ - 1; }

  // Frees the frames up to `number`.  False: no such frame was sent.
  bool acknowledge(uint64_t number) noexcept;
  // Sending begins again, behind `number`.  False: that one was never sent, or was acknowledged as received and is now
  // denied.
  bool rewind(uint64_t number) noexcept;

  bool between_frames() const noexcept { return sent_ == boundary_; }
  bool unsent() const noexcept { return sent_ != queued_; }
  // The next bytes, in one or two pieces; whole_frame: only up to the end of the frame that is partly sent.
  int next(iovec* pieces, bool whole_frame) noexcept;
  void sent(size_t bytes) noexcept;

 private:
  uint32_t length_at(uint64_t position) const noexcept;  // of the frame there
  void copy_in(uint64_t position, const void* from, size_t bytes) noexcept;

  std::unique_ptr<std::byte[]> ring_;
  uint32_t bytes_ = 0;
  uint64_t acked_ = 0, sent_ = 0, queued_ = 0;  // positions in the stream
  uint64_t boundary_ = 0;                       // sent_ <= boundary_: the end of the frame that is partly sent
  uint64_t sent_last_ = 0;                      // number of the last frame that was begun to be sent, ever
  uint64_t first_ = 1, next_ = 1;               // numbers: at acked_, and of the next frame
};

}  // namespace coherence::net
