#include "extension/engine/check/finding.hpp"

#include <cstdarg>
#include <cstdio>

namespace engine {

void Findings::add(const FindingPlace& at, const char* format, ...) {
  if (count_ == kMax) {
    ++dropped_;
    return;
  }
  Finding& next = finding_[count_++];
  next.at = at;
  va_list values;
  va_start(values, format);
  (void)std::vsnprintf(next.text, sizeof next.text, format, values);
  va_end(values);
}

}  // namespace engine
