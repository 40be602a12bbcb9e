// How frames lie in the stream: a header, the payload, and zeros up to a multiple of 8.  Little-endian.
//
// net.length-first: A header is checked before anything that it says is used: the payload is no longer than
// kPayloadMax, the type is one of ours or the user's, and what is zero today is zero.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence::net {

static_assert(std::endian::native == std::endian::little, "headers are sent as they lie in memory");

struct FrameHeader {
  uint32_t length;  // of the payload
  uint16_t type;
  uint16_t zero;
  uint64_t number;  // 0: of the link's own, not numbered
  uint64_t ack;     // the last number that the sender has received
};
static_assert(sizeof(FrameHeader) == 24);

inline constexpr uint32_t kPayloadMax = 1u << 20;
inline constexpr uint16_t kTypeMax = 0xfeff;    // a user's types; above are the link's own:
inline constexpr uint16_t kAckFrame = 0xff00;   // carries nothing but `ack`
inline constexpr uint16_t kPingFrame = 0xff01;  // asks for an acknowledgement
inline constexpr uint16_t kEndFrame = 0xff02;   // the link is over; the payload says why
inline constexpr uint32_t kReasonMax = 200;     // bytes of the reason in it

// What a frame takes in the stream and in its sender's window.
constexpr uint32_t frame_bytes(uint32_t payload) { return uint32_t(sizeof(FrameHeader)) + ((payload + 7) & ~7u); }
inline constexpr uint32_t kFrameMax = frame_bytes(kPayloadMax);

// kCorrupt: no version of this code writes it (net.length-first).
Status check_header(const FrameHeader&, Problem*) noexcept;

}  // namespace coherence::net
