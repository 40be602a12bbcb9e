#include "extension/pg/runtime/orphan.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "extension/pg/runtime/node.hpp"

extern "C" {
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "storage/pmsignal.h"
}

namespace gcl {
namespace {

// Whether both have this open or running: a file, a directory.
bool same_link(int pid, const char* what) noexcept {
  char path[64];
  struct stat its, ours;
  snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
  if (stat(path, &its) != 0) return false;
  snprintf(path, sizeof path, "/proc/self/%s", what);
  return stat(path, &ours) == 0 && its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

// A process that was killed leaves its number in shared memory, and the number may be another's by now.
bool of_this_server(int pid) noexcept { return same_link(pid, "exe") && same_link(pid, "cwd"); }

void quit_others() noexcept {
  if (ProcGlobal == nullptr) return;
  for (uint32_t i = 0; i < ProcGlobal->allProcCount; ++i) {
    const int pid = ProcGlobal->allProcs[i].pid;
    if (pid > 0 && pid != MyProcPid && of_this_server(pid)) (void)kill(pid, SIGQUIT);
  }
}

bool end_if(bool gone) noexcept {
  if (!gone) return false;
  coherence::Node& self = node_pool()->coherence_node();
  if (self.repairs_deaths()) {
    quit_others();
    _exit(2);
  }
  self.fence("a postmaster died");
  return true;
}

// Not by PostgreSQL's pipe: a process that was forked a moment before has its other end, too, and until it closes that
// the pipe says that the postmaster lives.  The signal comes once.
bool postmaster_lives() noexcept { return getppid() == PostmasterPid; }

void on_postmaster_death(int) {
  const int saved = errno;
  postmaster_possibly_dead = true;  // as PostgreSQL's handler, in whose place this one is
  (void)end_if(!postmaster_lives());
  errno = saved;
}

bool has_postmaster() noexcept { return node_pool() != nullptr && IsUnderPostmaster; }

}  // namespace

bool postmaster_gone() noexcept { return has_postmaster() && end_if(!PostmasterIsAlive()); }

void end_with_postmaster() noexcept {
#ifdef USE_POSTMASTER_DEATH_SIGNAL
  int number = 0;
  if (!has_postmaster() || !node_pool()->coherence_node().repairs_deaths()) return;
  if (prctl(PR_GET_PDEATHSIG, &number) == 0 && number != 0) pqsignal(number, on_postmaster_death);
  (void)end_if(!postmaster_lives());  // it may have come before
#endif
}

void pause_in_wait(long us) {
  CHECK_FOR_INTERRUPTS();
  if (has_postmaster()) (void)end_if(!postmaster_lives());
  pg_usleep(us);
}

}  // namespace gcl
