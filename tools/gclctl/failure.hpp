// Failure: why a command of gclctl did not do its work, as a plain sentence for the person who typed it.
#pragma once

#include <fmt/format.h>

#include <filesystem>
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

// The same for what the library throws: the path and what the system says of it.
inline std::string text_of(const std::exception& e) {
  auto* about_file = dynamic_cast<const std::filesystem::filesystem_error*>(&e);
  return about_file ? about_file->path1().string() + ": " + about_file->code().message() : e.what();
}

}  // namespace gclctl
