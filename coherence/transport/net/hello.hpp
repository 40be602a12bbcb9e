// The first bytes of a connection, both ways: who speaks, which link it is about, and what was received of it.
//
// net.greeting-keeps-its-head: The first 8 bytes of both greetings, and all of a refusal, are the same in all versions:
// so one of another version can be told why it is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/who.hpp"

namespace coherence::net {

inline constexpr uint32_t kMagic = 0x314c4347;  // "GCL1"
inline constexpr uint16_t kVersion = 1;

// From the side that dials.
struct Hello {
  Who from;
  Who to;  // start 0: whichever it is
  uint64_t cluster = 0;
  uint64_t link = 0;      // chosen at random
  uint64_t received = 0;  // number of the last frame that it has of the other side
  uint32_t window = 0;    // bytes that it sends unacknowledged, at most
  bool resumes = false;   // the link was connected before
};
inline constexpr size_t kHelloBytes = 88;
void write_hello(const Hello&, std::span<std::byte, kHelloBytes>) noexcept;
// kCorrupt: no greeting; kIncompatible: of another version.
Status read_hello(std::span<const std::byte, kHelloBytes>, Hello*, Problem*) noexcept;

enum class Refusal : uint8_t {
  kNone = 0,     // welcome
  kVersion,      // this side speaks another version
  kNotMe,        // `to` is somebody else
  kCluster,      // of another cluster
  kUnknownLink,  // `resumes`, and no such link is here (any more)
  kOlder,        // a newer start of the peer was here
  kHadItsLink,   // net.one-link-per-start
  kFull,         // as many links as there may be: worth another try
  kIsMe,         // the peer says that it is this side itself
};

// From the side that was dialed.
struct Welcome {
  Refusal refusal = Refusal::kNone;
  Who from;
  uint64_t link = 0;
  uint64_t received = 0;
  uint32_t window = 0;
  char reason[104] = "";  // of a refusal
};
inline constexpr size_t kWelcomeBytes = 160;
void write_welcome(const Welcome&, std::span<std::byte, kWelcomeBytes>) noexcept;
Status read_welcome(std::span<const std::byte, kWelcomeBytes>, Welcome*, Problem*) noexcept;

}  // namespace coherence::net
