// Quoted: what somebody else said, fit for a log: printable ASCII as it is, all else as \xNN, cut off after a while.
#pragma once

#include <string_view>

namespace coherence::net {

struct Quoted {
  explicit Quoted(std::string_view said) noexcept;
  char text[260];
};

}  // namespace coherence::net
