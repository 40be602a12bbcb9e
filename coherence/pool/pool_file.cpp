// The durable copy of a pool: written when the last node leaves, loaded when tmpfs has lost the pool.
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "coherence/pool/pool.hpp"
#include "coherence/pool/pool_header.hpp"

namespace coherence {
namespace {

constexpr uint64_t kChunk = 65536;

bool all_zero(const std::byte* p, uint64_t bytes) {
  return bytes == 0 || (p[0] == std::byte{0} && memcmp(p, p + 1, bytes - 1) == 0);
}

bool write_all(int fd, const std::byte* from, uint64_t bytes, uint64_t at) {
  while (bytes > 0) {
    ssize_t n = pwrite(fd, from, bytes, off_t(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from += n, at += uint64_t(n), bytes -= uint64_t(n);
  }
  return true;
}

bool read_all(int fd, std::byte* to, uint64_t bytes, uint64_t at) {
  while (bytes > 0) {
    ssize_t n = pread(fd, to, bytes, off_t(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n, at += uint64_t(n), bytes -= uint64_t(n);
  }
  return true;
}

bool sync_directory_of(const char* path) {
  char copy[560];
  snprintf(copy, sizeof copy, "%s", path);
  int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  bool ok = fsync(fd) == 0;
  close(fd);
  return ok;
}

}  // namespace

Status Pool::save(Problem* problem) {
  for (uint64_t p = 0; p < pages(); p++)  // P5
    if (peek_latch(PageId::at(MemoryNodeId{0}, p)) != LatchWord::free())
      return problem->set(Errc::kCorrupt, "page %llu is still owned by somebody: the pool is not saved",
                          static_cast<unsigned long long>(p));
  char temporary[560];
  snprintf(temporary, sizeof temporary, "%s.new", durable_path_);
  auto failed = [&](const char* what) {
    return problem->set(errno == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot %s pool file %s: %s", what, temporary,
                        strerror(errno));
  };
  int fd = ::open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return failed("create");
  auto* header = reinterpret_cast<PoolHeader*>(base_);
  header->state.store(PoolState::kClean);
  Status ok;
  if (ftruncate(fd, off_t(bytes_)) != 0) ok = failed("extend");
  for (uint64_t at = 0; ok && at < bytes_; at += kChunk) {  // what is zero stays a hole
    uint64_t bytes = bytes_ - at < kChunk ? bytes_ - at : kChunk;
    if (!all_zero(base_ + at, bytes) && !write_all(fd, base_ + at, bytes, at)) ok = failed("write");
  }
  if (ok && fsync(fd) != 0) ok = failed("sync");
  close(fd);
  if (ok && (rename(temporary, durable_path_) != 0 || !sync_directory_of(durable_path_))) ok = failed("rename");
  if (!ok) {
    header->state.store(PoolState::kInUse);
    unlink(temporary);
  }
  return ok;
}

Status Pool::load(const PoolFiles& files, Problem* problem) {
  auto failed = [&](const char* what, const char* path) {
    return problem->set(errno == ENOSPC   ? Errc::kNoSpace
                        : errno == ENOENT ? Errc::kNotFound
                                          : Errc::kSystem,
                        "cannot %s %s: %s", what, path, strerror(errno));
  };
  int from = ::open(files.durable_path, O_RDONLY | O_CLOEXEC);
  if (from < 0) return failed("open pool file", files.durable_path);
  auto header = std::make_unique<PoolHeader>();
  struct stat s;
  Status ok;
  if (fstat(from, &s) != 0 || !read_all(from, reinterpret_cast<std::byte*>(header.get()), sizeof *header, 0) ||
      header->magic != kPoolMagic || header->bytes != uint64_t(s.st_size))
    ok = problem->set(Errc::kCorrupt, "%s is not a whole pool file", files.durable_path);
  else if (header->state.load() != PoolState::kClean)
    ok = problem->set(Errc::kFenced, "pool file %s was not closed cleanly: it was in use when the machine stopped",
                      files.durable_path);
  if (!ok) {
    close(from);
    return ok;
  }
  char temporary[560];
  snprintf(temporary, sizeof temporary, "%s.new", files.path);
  int to = ::open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (to < 0) ok = failed("create", temporary);
  if (ok) {
    errno = posix_fallocate(to, 0, s.st_size);  // P1
    if (errno != 0) ok = failed("allocate memory for pool", files.path);
  }
  auto chunk = std::make_unique<std::byte[]>(kChunk);
  for (off_t at = 0; ok && at < s.st_size;) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0) break;  // a hole up to the end
    at = data / off_t(kChunk) * off_t(kChunk);
    uint64_t bytes = uint64_t(s.st_size - at) < kChunk ? uint64_t(s.st_size - at) : kChunk;
    if (!read_all(from, chunk.get(), bytes, uint64_t(at)))
      ok = failed("read", files.durable_path);
    else if (!write_all(to, chunk.get(), bytes, uint64_t(at)))
      ok = failed("write", temporary);
    at += off_t(bytes);
  }
  if (ok && rename(temporary, files.path) != 0) ok = failed("rename", temporary);
  close(from);
  if (to >= 0) close(to);
  if (!ok) unlink(temporary);
  return ok;
}

// P4: before the first node joins, the durable file says that it is no longer the truth.
Status Pool::mark_durable(bool in_use, Problem* problem) {
  if (!durable_path_[0]) return {};
  int fd = ::open(durable_path_, O_RDWR | O_CLOEXEC);
  PoolState state = in_use ? PoolState::kInUse : PoolState::kClean;
  bool ok = fd >= 0 && pwrite(fd, &state, sizeof state, offsetof(PoolHeader, state)) == ssize_t(sizeof state) &&
            fsync(fd) == 0;
  int error = errno;
  if (fd >= 0) close(fd);
  if (ok) return {};
  return problem->set(Errc::kSystem, "cannot mark pool file %s: %s", durable_path_, strerror(error));
}

}  // namespace coherence
