// PatientDeadline: the end of a wait for a process that may load or save the pool meanwhile.
//
//   for (PatientDeadline deadline(c, kStopMax); runs(); sleep())
//     if (deadline.is_over()) fail(...);
//
// gclctl.no-end-while-it-writes: How long a pool takes from the disk, or to it, no constant can say. A wait ends after
//     a time in which no file of the pool that is in the making has changed.
#pragma once

#include <chrono>
#include <string>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

class PatientDeadline {
 public:
  using Clock = std::chrono::steady_clock;
  PatientDeadline(const Cluster& c, Clock::duration max) : c_(c), max_(max) {}
  bool is_over();

 private:
  std::string look() const;

  const Cluster& c_;
  const Clock::duration max_;
  std::string seen_ = look();
  Clock::time_point over_ = Clock::now() + max_;
};

}  // namespace gclctl
