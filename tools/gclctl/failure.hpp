// Failure: why a command of gclctl did not do its work, as a plain sentence for the person who typed it.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace gclctl {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws a Failure: fail("port {} is in use", port).
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gclctl
