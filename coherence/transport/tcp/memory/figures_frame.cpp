#include "coherence/transport/tcp/memory/figures_frame.hpp"

#include <cstring>

namespace coherence::tcp {

Status decode_figures(std::span<const std::byte> frame, FiguresRecord* figures, Problem* problem) noexcept {
  if (frame.size() != sizeof *figures)
    return problem->set(Errc::kCorrupt, "figures of %zu bytes, which are %zu", frame.size(), sizeof *figures);
  memcpy(figures, frame.data(), sizeof *figures);
  return {};
}

}  // namespace coherence::tcp
