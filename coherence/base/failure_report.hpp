// FailureReport: what a thread can tell, beside the place, when one of its invariants is broken.  Whoever knows
// something derives from it; a failed VERIFY (verify.hpp) asks all that its thread has made and that live.
//
// The process is about to end, perhaps with memory that makes no sense: a report neither allocates nor takes a lock,
// and what it has written so far stands if it fails itself.
#pragma once

#include <pthread.h>

#include "coherence/base/text.hpp"

namespace coherence {

class FailureReport {
 public:
  FailureReport(const FailureReport&) = delete;
  FailureReport& operator=(const FailureReport&) = delete;

  // Writes what all reports of this thread tell to a file descriptor.  Does nothing when one of them fails in turn.
  static void write_all(int fd) noexcept;

  class Out {
   public:
    explicit Out(int fd) : fd_(fd) {}
    void line(const Text& text) noexcept;  // with a newline

   private:
    int fd_;
  };

 protected:
  FailureReport() noexcept;  // in the thread that will use it
  ~FailureReport();
  virtual void tell(Out&) const noexcept = 0;

 private:
  const pthread_t thread_;  // that made it
  int place_;               // in the table of all
};

}  // namespace coherence
