#include "extension/pg/ddl/ddl_position.hpp"

extern "C" {
#include "access/transam.h"
#include "access/xlog.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
}

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gcl {
namespace {

constexpr uint64_t kMagic = 0x67636c64646c3033;  // "gcl ddl 03"
constexpr int kReadsMax = 100;                   // of a file that is being written
constexpr long kReadAgainUs = 1000;

// Written in place: it lies in one sector, as pg_control does, and a reader beside the writer sees that it is torn.
struct File {
  uint64_t magic;
  DdlPosition before, after;
  uint64_t xid;  // 0: `after` counts
  pg_crc32c crc;
  uint32_t reserved;
};

pg_crc32c crc_of(const File& file) {
  pg_crc32c crc;
  INIT_CRC32C(crc);
  COMP_CRC32C(crc, &file, offsetof(File, crc));
  FIN_CRC32C(crc);
  return crc;
}

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

// False: there is none.
static bool load_file(Oid database, File* to) {
  const Name name(database);
  for (int i = 0; i < kReadsMax; ++i) {
    if (!read_ddl_file(name.text, to, sizeof *to)) return false;
    if (to->magic == kMagic && to->crc == crc_of(*to)) return true;
    pg_usleep(kReadAgainUs);
  }
  ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("file \"gcl_ddl/%s\" is not a DDL position", name.text)));
  pg_unreachable();
}

static bool counts(const File& file) { return file.xid == 0 || TransactionIdDidCommit(TransactionId(file.xid)); }

DdlPosition load_position(Oid database) {
  File found{};
  if (!load_file(database, &found)) return {};
  return counts(found) ? found.after : found.before;
}

static int open_position(Oid database) {
  char path[MAXPGPATH];
  path_of(Name(database).text, path, "");
  return open(path, O_WRONLY | PG_BINARY);
}

static bool write_in_place(Oid database, const File& file) {
  const int fd = open_position(database);
  if (fd < 0) return false;
  const bool done = pwrite(fd, &file, sizeof file, 0) == ssize_t(sizeof file);
  (void)close(fd);
  return done;
}

void write_position(Oid database, DdlPosition position) {
  File found{};
  const bool exists = load_file(database, &found);
  const DdlPosition before = !exists ? DdlPosition{} : counts(found) ? found.after : found.before;
  // The next file says only that what is before it counts, not whose commit that waits for.
  if (exists && found.xid != 0 && counts(found)) XLogFlush(TransactionIdGetCommitLSN(TransactionId(found.xid)));
  File next{kMagic, before, position, GetTopTransactionId(), 0, 0};
  next.crc = crc_of(next);
  const Name name(database);
  if (!exists) return replace_ddl_file(name.text, &next, sizeof next);
  if (!write_in_place(database, next))
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not write file \"gcl_ddl/%s\": %m", name.text)));
}

bool sync_position(Oid database) noexcept {
  const int fd = open_position(database);
  if (fd < 0) return false;
  const bool done = pg_fdatasync(fd) == 0;
  const int problem = errno;
  (void)close(fd);
  errno = problem;
  return done;
}

void save_position(Oid database, DdlPosition position) {
  write_position(database, position);
  if (!sync_position(database))
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not sync file \"gcl_ddl/%u\": %m", database)));
}

// Not synced: a crash that loses it leaves the xid, which is asked for again.
void settle_position(Oid database) noexcept {
  char path[MAXPGPATH];
  path_of(Name(database).text, path, "");
  const int fd = open(path, O_RDWR | PG_BINARY);
  if (fd < 0) return;
  File found{};
  const bool whole = pread(fd, &found, sizeof found, 0) == ssize_t(sizeof found) && found.crc == crc_of(found);
  if (whole && found.xid != 0 && counts(found)) {
    XLogFlush(TransactionIdGetCommitLSN(TransactionId(found.xid)));
    found.xid = 0;
    found.crc = crc_of(found);
    (void)!pwrite(fd, &found, sizeof found, 0);
  }
  (void)close(fd);
}

// A new file: who settles the old one just now does no harm.
void set_position(Oid database, DdlPosition position) {
  File next{kMagic, position, position, 0, 0, 0};
  next.crc = crc_of(next);
  replace_ddl_file(Name(database).text, &next, sizeof next);
}

void forget_ddl_file(const char* name) noexcept {
  char path[MAXPGPATH];
  path_of(name, path, "");
  (void)unlink(path);
}

void forget_position(Oid database) noexcept { forget_ddl_file(Name(database).text); }

}  // namespace gcl
