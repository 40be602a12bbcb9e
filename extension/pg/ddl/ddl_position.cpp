#include "extension/pg/ddl/ddl_position.hpp"

extern "C" {
#include "access/transam.h"
#include "storage/fd.h"
}

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gcl {
namespace {

constexpr uint64_t kMagic = 0x67636c64646c3032;  // "gcl ddl 02"

struct File {
  uint64_t magic;
  DdlPosition before, after;
  uint64_t xid;  // 0: `after` counts
};

void path_of(const char* name, char* to, const char* suffix) { snprintf(to, MAXPGPATH, "gcl_ddl/%s%s", name, suffix); }

struct Name {
  char text[16];
  explicit Name(Oid database) { snprintf(text, sizeof text, "%u", database); }
};

}  // namespace

bool read_ddl_file(const char* name, void* to, size_t bytes) {
  char path[MAXPGPATH];
  path_of(name, path, "");
  const int fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
  if (fd < 0) {
    if (errno == ENOENT) return false;
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", path)));
  }
  const ssize_t found = read(fd, to, bytes);
  CloseTransientFile(fd);
  if (found != ssize_t(bytes))
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("file \"%s\" is not what gcl has written", path)));
  return true;
}

void replace_ddl_file(const char* name, const void* from, size_t bytes) {
  char path[MAXPGPATH], fresh[MAXPGPATH];
  path_of(name, path, "");
  path_of(name, fresh, ".new");
  if (MakePGDirectory("gcl_ddl") < 0 && errno != EEXIST)
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not create directory \"gcl_ddl\": %m")));
  const int fd = OpenTransientFile(fresh, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
  if (fd < 0) ereport(ERROR, (errcode_for_file_access(), errmsg("could not create file \"%s\": %m", fresh)));
  if (write(fd, from, bytes) != ssize_t(bytes) || pg_fsync(fd) != 0)
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", fresh)));
  CloseTransientFile(fd);
  (void)durable_rename(fresh, path, ERROR);
}

DdlPosition load_position(Oid database) {
  const Name name(database);
  File found{};
  if (!read_ddl_file(name.text, &found, sizeof found)) return {};
  if (found.magic != kMagic)
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("file \"gcl_ddl/%s\" is not a DDL position", name.text)));
  const bool counts = found.xid == 0 || TransactionIdDidCommit(TransactionId(found.xid));
  return counts ? found.after : found.before;
}

void save_position(Oid database, DdlPosition position) {
  const File next{kMagic, load_position(database), position, GetTopTransactionId()};
  replace_ddl_file(Name(database).text, &next, sizeof next);
}

// Not synced: a crash that loses it leaves the xid, which is asked for again.
void settle_position(Oid database) noexcept {
  char path[MAXPGPATH];
  path_of(Name(database).text, path, "");
  const int fd = open(path, O_WRONLY | PG_BINARY);
  if (fd < 0) return;
  constexpr uint64_t kSettled = 0;
  (void)!pwrite(fd, &kSettled, sizeof kSettled, offsetof(File, xid));
  (void)close(fd);
}

void forget_position(Oid database) noexcept {
  char path[MAXPGPATH];
  path_of(Name(database).text, path, "");
  (void)unlink(path);
}

}  // namespace gcl
