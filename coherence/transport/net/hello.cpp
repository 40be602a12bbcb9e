#include "coherence/transport/net/hello.hpp"

#include <cstring>

#include "coherence/transport/net/send_window.hpp"

namespace coherence::net {
namespace {

struct Head {
  uint32_t magic;
  uint16_t version, bytes;
};
static_assert(sizeof(Head) == kHeadBytes);

struct HelloBytes {
  Head head;
  uint8_t from_role, from_id, to_role, to_id, resumes, zero[3];
  uint64_t from_start, to_start, cluster, link, received;
  uint32_t window, zero_too;
};
static_assert(sizeof(HelloBytes) == kHelloBytes);

struct WelcomeBytes {
  Head head;
  uint8_t refusal, from_role, from_id, zero[5];
  uint64_t from_start, link, received;
  uint32_t window, zero_too;
  char reason[sizeof Welcome::reason];
};
static_assert(sizeof(WelcomeBytes) == kWelcomeBytes);

bool is_anybody(uint8_t role, uint8_t id) noexcept {
  switch (Role(role)) {
    case Role::kNode:
      return NodeId{id}.valid();
    case Role::kMemoryNode:
      return id < kMemoryNodesMax;
    case Role::kTool:
      return id == 0;
  }
  return false;
}

Errc no_greeting(const char* what, Problem* problem) noexcept {
  return problem->set(Errc::kCorrupt, "its greeting is none of a version %u: %s", unsigned(kLinkVersion), what);
}

}  // namespace

void write_hello(const Hello& hello, std::span<std::byte, kHelloBytes> to) noexcept {
  HelloBytes bytes = {};
  bytes.head = {kMagic, kLinkVersion, kHelloBytes};
  bytes.from_role = uint8_t(hello.from.role), bytes.from_id = hello.from.id, bytes.from_start = hello.from.start;
  bytes.to_role = uint8_t(hello.to.role), bytes.to_id = hello.to.id, bytes.to_start = hello.to.start;
  bytes.cluster = hello.cluster, bytes.link = hello.link, bytes.received = hello.received;
  bytes.window = hello.window, bytes.resumes = hello.resumes;
  memcpy(to.data(), &bytes, sizeof bytes);
}

Status check_head(std::span<const std::byte, kHeadBytes> from, Problem* problem) noexcept {
  Head head;
  memcpy(&head, from.data(), sizeof head);
  if (head.magic != kMagic) return problem->set(Errc::kCorrupt, "it does not greet as one of us does");
  if (head.version != kLinkVersion)
    return problem->set(Errc::kIncompatible, "it speaks version %u of links, this side version %u",
                        unsigned(head.version), unsigned(kLinkVersion));
  return {};
}

Status read_hello(std::span<const std::byte, kHelloBytes> from, Hello* hello, Problem* problem) noexcept {
  GCL_TRY(check_head(from.first<kHeadBytes>(), problem));
  HelloBytes bytes;
  memcpy(&bytes, from.data(), sizeof bytes);
  if (bytes.head.bytes != kHelloBytes) return no_greeting("another length", problem);
  if (!is_anybody(bytes.from_role, bytes.from_id) || bytes.from_start == 0)
    return no_greeting("it says of nobody that it is", problem);
  if (!is_anybody(bytes.to_role, bytes.to_id)) return no_greeting("it is for nobody", problem);
  if (!SendWindow::fits(bytes.window)) return no_greeting("no such window", problem);
  if (bytes.resumes > 1) return no_greeting("neither begun nor resumed", problem);
  hello->from = {Role(bytes.from_role), bytes.from_id, bytes.from_start};
  hello->to = {Role(bytes.to_role), bytes.to_id, bytes.to_start};
  hello->cluster = bytes.cluster, hello->link = bytes.link, hello->received = bytes.received;
  hello->window = bytes.window, hello->resumes = bytes.resumes != 0;
  return {};
}

void write_welcome(const Welcome& welcome, std::span<std::byte, kWelcomeBytes> to) noexcept {
  WelcomeBytes bytes = {};
  bytes.head = {kMagic, kLinkVersion, kWelcomeBytes};
  bytes.refusal = uint8_t(welcome.refusal);
  bytes.from_role = uint8_t(welcome.from.role), bytes.from_id = welcome.from.id, bytes.from_start = welcome.from.start;
  bytes.link = welcome.link, bytes.received = welcome.received, bytes.window = welcome.window;
  memcpy(bytes.reason, welcome.reason, strnlen(welcome.reason, sizeof bytes.reason));
  memcpy(to.data(), &bytes, sizeof bytes);
}

Status read_welcome(std::span<const std::byte, kWelcomeBytes> from, Welcome* welcome, Problem* problem) noexcept {
  WelcomeBytes bytes;
  memcpy(&bytes, from.data(), sizeof bytes);
  const Status head = check_head(from.first<kHeadBytes>(), problem);
  if (!head && (head.error() == Errc::kCorrupt || bytes.refusal == 0)) return head;
  if (head && bytes.head.bytes != kWelcomeBytes) return no_greeting("another length", problem);
  if (head && bytes.refusal > uint8_t(kLastRefusal)) return no_greeting("no such refusal", problem);
  welcome->refusal = head ? Refusal(bytes.refusal) : Refusal::kVersion;
  memcpy(welcome->reason, bytes.reason, sizeof welcome->reason - 1);
  welcome->reason[sizeof welcome->reason - 1] = 0;
  if (bytes.refusal != 0) return {};
  if (!is_anybody(bytes.from_role, bytes.from_id) || bytes.from_start == 0)
    return no_greeting("it says of nobody that it is", problem);
  if (!SendWindow::fits(bytes.window)) return no_greeting("no such window", problem);
  welcome->from = {Role(bytes.from_role), bytes.from_id, bytes.from_start};
  welcome->link = bytes.link, welcome->received = bytes.received, welcome->window = bytes.window;
  return {};
}

}  // namespace coherence::net
