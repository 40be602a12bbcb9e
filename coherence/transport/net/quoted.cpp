#include "coherence/transport/net/quoted.hpp"

#include <cstdio>
#include <cstring>

namespace coherence::net {

Quoted::Quoted(std::string_view said) noexcept {
  constexpr size_t kDots = 4;  // and the zero behind them
  size_t at = 0;
  for (const char c : said) {
    if (at + 4 + kDots > sizeof text) {
      memcpy(text + at, "...", 3);
      at += 3;
      break;
    }
    if (c >= ' ' && c <= '~' && c != '\\')
      text[at++] = c;
    else
      at += size_t(snprintf(text + at, 5, "\\x%02x", unsigned(static_cast<unsigned char>(c))));
  }
  text[at] = 0;
}

}  // namespace coherence::net
