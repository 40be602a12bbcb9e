// The first bytes of a connection, both ways: who speaks, which link it is about, and what was received of it.
//
// net.greeting-keeps-its-head: The first 8 bytes of both greetings, and all of a refusal, lie the same in all versions:
// so that one of another version can be told why it is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/who.hpp"

namespace coherence::net {

inline constexpr uint32_t kMagic = 0x4b4c4347;  // "GCLK"
inline constexpr uint16_t kLinkVersion = 1;

// From the side that dials.
struct Hello {
  Who from;
  Who to;                 // start 0: whichever it is
  uint64_t cluster = 0;   // both sides' is the same; 0, of a tool: whichever it is
  uint64_t link = 0;      // chosen at random
  uint64_t received = 0;  // number of the last frame that it has of the other side
  uint32_t window = 0;    // bytes that it sends unacknowledged at most
  bool resumes = false;   // the link was connected before
};
inline constexpr size_t kHeadBytes = 8;
inline constexpr size_t kHelloBytes = 64;
void write_hello(const Hello&, std::span<std::byte, kHelloBytes>) noexcept;
// kCorrupt: it is no greeting, of this version or another; kIncompatible: of another version.
Status check_head(std::span<const std::byte, kHeadBytes>, Problem*) noexcept;
Status read_hello(std::span<const std::byte, kHelloBytes>, Hello*, Problem*) noexcept;

enum class Refusal : uint8_t {
  kNone = 0,     // welcome
  kVersion,      // this side speaks another version
  kNotMe,        // `to` is somebody else
  kIsMe,         // `from` says that it is this side itself
  kCluster,      // of another cluster
  kUnknownLink,  // `resumes`, and no such link is here (any more)
  kOlder,        // a newer start of the peer was here
  kHadItsLink,   // net.one-link-per-start
  kFull,         // as many links as there may be: worth another try
};
inline constexpr Refusal kLastRefusal = Refusal::kFull;

// From the side that was dialed.
struct Welcome {
  Refusal refusal = Refusal::kNone;
  Who from;
  uint64_t link = 0;
  uint64_t received = 0;
  uint32_t window = 0;
  char reason[104] = "";  // of a refusal; as the other side wrote it, but with a zero at the end
};
inline constexpr size_t kWelcomeBytes = 152;
void write_welcome(const Welcome&, std::span<std::byte, kWelcomeBytes>) noexcept;
// A welcome of another version is kIncompatible; a refusal of another version is read.
Status read_welcome(std::span<const std::byte, kWelcomeBytes>, Welcome*, Problem*) noexcept;

}  // namespace coherence::net
