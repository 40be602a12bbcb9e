#include "coherence/base/problem.hpp"

#include <cstdarg>
#include <cstdio>

namespace coherence {

Errc Problem::set(Errc error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return error;
}

void Problem::write(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
}

}  // namespace coherence
