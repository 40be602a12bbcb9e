#include "coherence/base/text.hpp"

#include <cstdarg>
#include <cstdio>

namespace coherence {

// Numbers and short strings only: for these vsnprintf() needs no memory, so that a process about to end may call it.
Text& Text::add(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  const int bytes = vsnprintf(text_ + size_, sizeof text_ - size_, format, arguments);
  va_end(arguments);
  if (bytes > 0) size_ += size_t(bytes);
  if (size_ > sizeof text_ - 1) size_ = sizeof text_ - 1;
  return *this;
}

}  // namespace coherence
