// ShiftedClock: programs that are started while there is one have another wall clock, and it can jump while they run.
//
//   const ShiftedClock yesterday(library, directory + "/clock", -std::chrono::hours(24));
//   start a program
//
// `library` is shifted_clock.cpp, loaded before theirs; it adds what the file says, nanoseconds in 8 bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace gcl_test {

class ShiftedClock {
 public:
  ShiftedClock(const std::string& library, std::string file, std::chrono::nanoseconds by) : file_(std::move(file)) {
    jump(by);
    setenv("LD_PRELOAD", library.c_str(), 1);
    setenv("GCL_TEST_CLOCK", file_.c_str(), 1);
    const char* const asan = getenv("ASAN_OPTIONS");  // it would rather be the first itself
    setenv("ASAN_OPTIONS", (std::string(asan != nullptr ? asan : "") + ":verify_asan_link_order=0").c_str(), 1);
  }
  ~ShiftedClock() {
    unsetenv("LD_PRELOAD");
    unsetenv("GCL_TEST_CLOCK");
  }
  ShiftedClock(const ShiftedClock&) = delete;
  void jump(std::chrono::nanoseconds by) const {
    const int64_t ns = by.count();
    std::fstream out(file_, std::ios::binary | std::ios::out);
    out.write(reinterpret_cast<const char*>(&ns), sizeof ns);
  }

 private:
  const std::string file_;
};

}  // namespace gcl_test
