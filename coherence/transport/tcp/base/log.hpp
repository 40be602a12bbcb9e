// Where what happens to links and peers is told, a line each: it names the peer, and is safe to print.
#pragma once

namespace coherence::tcp {

class Log {
 public:
  virtual void line(const char* text) noexcept = 0;

 protected:
  ~Log() = default;
};

}  // namespace coherence::tcp
