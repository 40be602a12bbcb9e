#include "coherence/transport/net/frame.hpp"

namespace coherence::net {

Status check_header(const FrameHeader& header, Problem* problem) noexcept {
  const bool own = header.type > kTypeMax;
  if (own && header.type != kAckFrame && header.type != kPingFrame && header.type != kEndFrame)
    return problem->set(Errc::kCorrupt, "a frame of type %u, which is none", unsigned(header.type));
  const uint32_t most = !own ? kPayloadMax : header.type == kEndFrame ? kReasonMax : 0;
  if (header.length > most)
    return problem->set(Errc::kCorrupt, "a frame of type %u with %u bytes, more than %u", unsigned(header.type),
                        header.length, most);
  if (header.zero != 0) return problem->set(Errc::kCorrupt, "a frame whose header has %u for 0", unsigned(header.zero));
  if (own != (header.number == 0))
    return problem->set(Errc::kCorrupt, "a frame of type %u with number %llu", unsigned(header.type),
                        static_cast<unsigned long long>(header.number));
  return {};
}

}  // namespace coherence::net
