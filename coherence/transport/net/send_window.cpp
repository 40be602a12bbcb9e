#include "coherence/transport/net/send_window.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "coherence/base/verify.hpp"

namespace coherence::net {

// Not make_unique(): it would touch every byte of a window most of which may never be used.
bool SendWindow::open(uint32_t bytes) noexcept {
  VERIFY(fits(bytes));
  ring_.reset(new (std::nothrow) std::byte[bytes]);
  bytes_ = ring_ ? bytes : 0;
  return bytes_ != 0;
}

void SendWindow::queue(uint16_t type, std::span<const std::span<const std::byte>> pieces, uint32_t payload,
                       uint64_t ack) noexcept {
  VERIFY(room_for(payload));
  const FrameHeader header{payload, type, 0, next_++, ack};
  const uint64_t end = queued_ + frame_bytes(payload);
  put(&header, sizeof header);
  for (const auto& piece : pieces) put(piece.data(), piece.size());
  static constexpr char kZeros[8] = {};
  VERIFY(queued_ <= end && end - queued_ < sizeof kZeros);
  put(kZeros, end - queued_);
}

void SendWindow::put(const void* from, size_t bytes) noexcept {
  const auto* const bytes_from = static_cast<const std::byte*>(from);
  const size_t at = queued_ & (bytes_ - 1);
  const size_t first = std::min<size_t>(bytes, bytes_ - at);
  if (first > 0) memcpy(ring_.get() + at, bytes_from, first);
  if (bytes > first) memcpy(ring_.get(), bytes_from + first, bytes - first);
  queued_ += bytes;
}

// Frames begin at multiples of 8, so that the length never wraps.
uint32_t SendWindow::bytes_at(uint64_t position) const noexcept {
  uint32_t length;
  memcpy(&length, ring_.get() + (position & (bytes_ - 1)), sizeof length);
  return frame_bytes(length);
}

// An empty ring begins anew, so that only as much of it is touched as is under way.
void SendWindow::free_up_to(uint64_t number) noexcept {
  for (; first_ <= number; first_++) acked_ += bytes_at(acked_);
  if (empty()) acked_ = sent_ = boundary_ = queued_ = 0;
}

bool SendWindow::acknowledge(uint64_t number) noexcept {
  if (number >= sending_) return false;
  free_up_to(number);
  return true;
}

bool SendWindow::rewind(uint64_t number) noexcept {
  if (number + 1 < first_ || number > ever_sent_) return false;
  free_up_to(number);
  sent_ = boundary_ = acked_;
  sending_ = first_;
  return true;
}

int SendWindow::pieces_of(uint64_t from, uint64_t to, iovec* pieces) const noexcept {
  if (from == to) return 0;
  const size_t at = from & (bytes_ - 1), bytes = to - from;
  const size_t first = std::min<size_t>(bytes, bytes_ - at);
  pieces[0] = {ring_.get() + at, first};
  if (first == bytes) return 1;
  pieces[1] = {ring_.get(), bytes - first};
  return 2;
}

void SendWindow::sent(size_t bytes) noexcept {
  VERIFY(bytes <= queued_ - sent_);
  for (const uint64_t to = sent_ + bytes; sent_ < to;) {
    if (between_frames()) boundary_ = sent_ + bytes_at(sent_);
    sent_ = std::min(to, boundary_);
    if (between_frames()) ever_sent_ = std::max(ever_sent_, sending_++);
  }
}

}  // namespace coherence::net
