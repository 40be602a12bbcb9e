// SecretFile: the bytes of a file that nobody else can read (net.key-file-private), wiped at the end.
#pragma once

#include <cstddef>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence::net {

class SecretFile {
 public:
  SecretFile() = default;
  SecretFile(const SecretFile&) = delete;
  ~SecretFile();
  // kNotFound, kSystem; kIncompatible: others can read it, or it is no file of a key's size.
  Status read(const char* path, Problem*);
  const char* text() const noexcept { return text_; }
  size_t size() const noexcept { return size_; }

 private:
  static constexpr size_t kMax = 32 * 1024;
  char text_[kMax + 1];
  size_t size_ = 0;
};

}  // namespace coherence::net
