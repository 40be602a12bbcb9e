#include "coherence/transport/verbs/path_frame.hpp"

#include <bit>
#include <cstring>

namespace coherence::verbs {

static_assert(std::endian::native == std::endian::little);

Status decode_path_end(std::span<const std::byte> payload, PathEnd* end, Problem* problem) noexcept {
  constexpr uint32_t kMax = (1u << 24) - 1;
  if (payload.size() >= sizeof end->format) memcpy(&end->format, payload.data(), sizeof end->format);
  if (payload.size() >= sizeof end->format && end->format != kPathFormat)
    return problem->set(Errc::kIncompatible, "the end of a queue pair in format %u, not %u", end->format, kPathFormat);
  if (payload.size() != sizeof *end)
    return problem->set(Errc::kCorrupt, "the end of a queue pair in %zu bytes, not %zu", payload.size(), sizeof *end);
  memcpy(end, payload.data(), sizeof *end);
  if (end->number < 2 || end->number > kMax || end->first > kMax || end->mtu < 1 || end->mtu > 5 || end->reads == 0 ||
      end->infiniband > 1 || end->zero[0] != 0 || end->zero[1] != 0 || end->zero[2] != 0)
    return problem->set(Errc::kCorrupt, "the end of a queue pair that none can have");
  return {};
}

}  // namespace coherence::verbs
