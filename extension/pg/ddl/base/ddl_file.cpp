#include "extension/pg/ddl/base/ddl_file.hpp"

extern "C" {
#include "storage/fd.h"
}

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gcl {

static void path_of(const char* name, char* to, const char* suffix) {
  snprintf(to, MAXPGPATH, "gcl_ddl/%s%s", name, suffix);
}

bool read_ddl_file(const char* name, void* to, size_t bytes) {
  char path[MAXPGPATH];
  path_of(name, path, "");
  const int fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
  if (fd < 0) {
    if (errno == ENOENT) return false;
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", path)));
  }
  const ssize_t found = read(fd, to, bytes);
  if (found < 0) ereport(ERROR, (errcode_for_file_access(), errmsg("could not read file \"%s\": %m", path)));
  CloseTransientFile(fd);
  if (found != ssize_t(bytes))
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("file \"%s\" is not what gcl has written", path)));
  return true;
}

void replace_ddl_file(const char* name, const void* from, size_t bytes) {
  char path[MAXPGPATH], fresh[MAXPGPATH];
  path_of(name, path, "");
  path_of(name, fresh, ".new");
  if (MakePGDirectory("gcl_ddl") == 0)
    fsync_fname(".", true);
  else if (errno != EEXIST)
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not create directory \"gcl_ddl\": %m")));
  const int fd = OpenTransientFile(fresh, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
  if (fd < 0) ereport(ERROR, (errcode_for_file_access(), errmsg("could not create file \"%s\": %m", fresh)));
  if (write(fd, from, bytes) != ssize_t(bytes) || pg_fsync(fd) != 0)
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", fresh)));
  CloseTransientFile(fd);
  (void)durable_rename(fresh, path, ERROR);
}

void forget_ddl_file(const char* name) noexcept {
  char path[MAXPGPATH];
  path_of(name, path, "");
  if (unlink(path) != 0 && errno != ENOENT)
    ereport(LOG, (errcode_for_file_access(), errmsg("could not remove file \"%s\": %m", path)));
}

}  // namespace gcl
