// A fast shutdown of a server that was about to restart after a crash.  PostgreSQL 15 then waits for ever for a process
// that it has not told to end: its checkpointer, or its startup process, whatever is loaded into it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

namespace gclctl {

// One server that was told to stop, looked at again and again.
class StuckShutdown {
 public:
  explicit StuckShutdown(pid_t postmaster) : postmaster_(postmaster) {}
  // Whether for some seconds it has had no processes but these, no checkpoint that they would be at, and such as only
  // tell a client that the server is shutting down: there may always be one of those.
  bool is_certain();

 private:
  static constexpr auto kAtLeast = std::chrono::seconds(10);
  static constexpr auto kRefusalMax = std::chrono::seconds(1);  // a process that lives longer does something else
  using Clock = std::chrono::steady_clock;
  const pid_t postmaster_;
  Clock::time_point since_ = Clock::time_point::max();  // max: it was not so at the last look
  std::map<pid_t, Clock::time_point> others_;           // since when they were seen
};

}  // namespace gclctl
