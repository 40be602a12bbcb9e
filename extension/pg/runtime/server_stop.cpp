#include "extension/pg/runtime/server_stop.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "utils/pidfile.h"
}

namespace gcl {
namespace {

// The postmaster writes it before it tells any process to end.  A file that it could not write, or that cannot be read,
// keeps nobody from ending.
bool postmaster_says_stopping() {
  char text[BLCKSZ];
  const int fd = open("postmaster.pid", O_RDWR | O_CLOEXEC);
  if (fd < 0) return true;
  const ssize_t bytes = read(fd, text, sizeof text - 1);
  close(fd);
  if (bytes <= 0) return true;
  text[bytes] = '\0';
  const char* line = text;
  for (int number = 1; number < LOCK_FILE_LINE_PM_STATUS; ++number) {
    line = strchr(line, '\n');
    if (line++ == nullptr) return true;
  }
  return strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
}

}  // namespace

bool server_stops() {
  static bool stops = false;
  if (stops || !ShutdownRequestPending) return stops;
  ShutdownRequestPending = false;  // before the look: a worker that is told to end behind it looks again
  stops = postmaster_says_stopping();
  if (stops)
    ShutdownRequestPending = true;  // for code that looks at that
  else
    ereport(LOG, errmsg("gcl: told to end, and goes on: the server does not stop"));
  return stops;
}

}  // namespace gcl
