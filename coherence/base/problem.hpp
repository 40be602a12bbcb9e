// Problem: the words that go with an Errc.
#pragma once

#include "coherence/base/result.hpp"

namespace coherence {

// A sentence for a human: what is wrong, with both values when two differ.
struct Problem {
  char text[480] = "";
  [[gnu::format(printf, 3, 4)]] Errc set(Errc error, const char* format, ...);  // returns `error`, sets the text
  [[gnu::format(printf, 2, 3)]] void write(const char* format, ...);
};

}  // namespace coherence
