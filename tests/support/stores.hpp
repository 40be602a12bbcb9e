// Stores into memory that processes share, found by memory protection: the mapping is made read-only; a store into it
// is noted, and let through.  (Not under ThreadSanitizer, whose validate() is a store.)
//
//   gcl_test::Stores stores(&line);                      // the mapping in which that lies
//   stores.watch([&] { ... });
//   EXPECT_FALSE(stores.elsewhere_than(&line, 8));
//
// One at a time in a process, and the only thread that stores there.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace gcl_test {

class Stores {
 public:
  explicit Stores(const void* inside) {
    FILE* maps = fopen("/proc/self/maps", "r");
    EXPECT_NE(maps, nullptr);
    const auto wanted = reinterpret_cast<uintptr_t>(inside);
    char text[512];
    while (fgets(text, sizeof text, maps) != nullptr) {
      unsigned long from, to;
      if (sscanf(text, "%lx-%lx", &from, &to) == 2 && from <= wanted && wanted < to) begin_ = from, end_ = to;
    }
    fclose(maps);
    EXPECT_LT(begin_, end_);
  }
  // Stores there do not count.
  void ignore(const void* at, size_t bytes) { ignored_ = {reinterpret_cast<uintptr_t>(at), bytes}; }

  template <class Act>
  void watch(const Act& act) {
    count_ = 0;
    const std::vector<char> before(reinterpret_cast<char*>(begin_), reinterpret_cast<char*>(end_));
    struct sigaction noting {
    }, old;
    noting.sa_sigaction = note;
    noting.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &noting, &old);
    mprotect(reinterpret_cast<void*>(begin_), end_ - begin_, PROT_READ);
    act();
    mprotect(reinterpret_cast<void*>(begin_), end_ - begin_, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &old, nullptr);
    changed_.clear();
    for (uintptr_t at = begin_; at < end_; at += kLine)
      if (memcmp(reinterpret_cast<char*>(at), &before[at - begin_], kLine) != 0 && !ignored(at)) changed_.push_back(at);
  }
  // The lines of 64 bytes that the last watch() changed.
  const std::vector<uintptr_t>& changed() const { return changed_; }
  // Whether it stored to anything but `but`.  Of each 4 KB only the first store is known.
  bool elsewhere_than(const void* but, size_t bytes) const {
    const auto from = reinterpret_cast<uintptr_t>(but);
    return std::any_of(at_, at_ + count_,
                       [&](uintptr_t at) { return !ignored(at) && (at < from || at >= from + bytes); });
  }
  bool anything() const { return count_ > 0; }

 private:
  static constexpr uintptr_t kOsPage = 4096, kLine = 64;
  static constexpr int kMax = 64;
  bool ignored(uintptr_t at) const { return at >= ignored_.at && at < ignored_.at + ignored_.bytes; }
  static void note(int, siginfo_t* info, void*) {
    const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    void* page = reinterpret_cast<void*>(at & ~(kOsPage - 1));
    if (count_ == kMax || mprotect(page, kOsPage, PROT_READ | PROT_WRITE) != 0) _exit(3);
    at_[count_++] = at;
  }

  static inline uintptr_t at_[kMax];  // where stores went, once per 4 KB; from the signal handler
  static inline int count_ = 0;
  uintptr_t begin_ = 0, end_ = 0;
  struct {
    uintptr_t at = 0;
    size_t bytes = 0;
  } ignored_;
  std::vector<uintptr_t> changed_;
};

}  // namespace gcl_test
