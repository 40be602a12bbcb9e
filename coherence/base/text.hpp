// Text: words put together piece by piece, without allocation; what does not fit is cut off.
//
//   Text text;
//   text.add("page %u", number).add(", %s", name);
#pragma once

#include <cstddef>

namespace coherence {

class Text {
 public:
  [[gnu::format(printf, 2, 3)]] Text& add(const char* format, ...) noexcept;
  const char* c_str() const noexcept { return text_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  size_t size_ = 0;
  char text_[2048] = "";
};

}  // namespace coherence
