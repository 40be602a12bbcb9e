#include "coherence/region/memory_file.hpp"

#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "coherence/region/checksums.hpp"
#include "coherence/region/saved_file.hpp"

namespace coherence {
namespace {

// The first line in which two identities differ, for the message.
void first_difference(const char* ours, const char* theirs, char* a, char* b, size_t bytes) {
  auto line = [&](const char* p, char* out) { snprintf(out, bytes, "%.*s", int(strcspn(p, "\n")), p); };
  while (*ours || *theirs) {
    line(ours, a);
    line(theirs, b);
    if (strcmp(a, b) != 0) return;
    auto next = [](const char* p) { return p + strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n'); };
    ours = next(ours);
    theirs = next(theirs);
  }
}

}  // namespace

MemoryPath::MemoryPath(const char* pool, uint32_t memory_node, bool unfinished) {
  constexpr int kPoolMax = sizeof text - sizeof ".mem4294967295.new";
  const char* suffix = unfinished ? ".new" : "";
  if (memory_node == 0)
    snprintf(text, sizeof text, "%.*s%s", kPoolMax, pool, suffix);
  else
    snprintf(text, sizeof text, "%.*s.mem%u%s", kPoolMax, pool, memory_node, suffix);
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

Status allocate_file(const char* path, uint64_t bytes, int* fd, Problem* problem) {
  *fd = ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (*fd < 0) return problem->set(Errc::kSystem, "cannot create %s: %s", path, strerror(errno));
  if (int error = posix_fallocate(*fd, 0, off_t(bytes)); error != 0)  // pool.allocated-in-full
    return problem->set(error == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot allocate %.0f MB for %s: %s",
                        double(bytes) / 1048576, path, strerror(error));
  return {};
}

Status read_header(int fd, const char* path, PoolHeader* header, Problem* problem) {
  auto* const to = reinterpret_cast<std::byte*>(header);
  constexpr uint64_t kSizesAt = offsetof(PoolHeader, memory_bytes);
  const bool read = read_all(fd, to, sizeof *header, 0) && read_all(fd, to + kSizesAt, sizeof header->memory_bytes,
                                                                    kSizesAt);  // after the count (pool.counted-last)
  if (read && header->magic == kPoolMagic) return {};
  if (!read && errno != ENODATA) return problem->set(Errc::kSystem, "cannot read %s: %s", path, strerror(errno));
  return problem->set(Errc::kCorrupt, "%s is not a pool", path);
}

Status check_whole(int fd, const PoolHeader& header, bool saved, const char* path, Problem* problem) {
  struct stat s;
  if (fstat(fd, &s) != 0) return problem->set(Errc::kSystem, "cannot stat %s: %s", path, strerror(errno));
  const uint64_t expected = saved ? saved_bytes(header.bytes) : header.bytes;
  if (uint64_t(s.st_size) == expected || (uint64_t(s.st_size) > expected && !saved)) return {};
  return problem->set(Errc::kCorrupt, "%s is %s than it must be: %llu bytes, not %llu", path,
                      uint64_t(s.st_size) < expected ? "shorter" : "longer", static_cast<unsigned long long>(s.st_size),
                      static_cast<unsigned long long>(expected));
}

Status check_format(const PoolHeader& h, const char* path, Problem* problem) {
  if (h.format_version == kPoolFormatVersion) return {};
  return problem->set(Errc::kIncompatible, "pool %s has format version %u, this server reads version %u", path,
                      h.format_version, kPoolFormatVersion);
}

Status check_header(const PoolHeader& h, const char* compatibility, const char* path, Problem* problem) {
  GCL_TRY(check_format(h, path, problem));
  if (h.block_size != kPageSize)
    return problem->set(Errc::kIncompatible, "pool %s has pages of %u bytes, this server has %u", path, h.block_size,
                        kPageSize);
  if (h.memory_node != 0 || h.memory_nodes == 0 || h.memory_nodes > uint32_t(kMemoryNodesMax))
    return problem->set(Errc::kCorrupt, "%s is memory node %u of a pool, not a pool", path, h.memory_node);
  if (compatibility && *compatibility && strcmp(h.compatibility, compatibility) != 0) {
    char ours[160], theirs[160];
    first_difference(compatibility, h.compatibility, ours, theirs, sizeof ours);
    return problem->set(Errc::kIncompatible, "this server differs from pool %s: the pool has \"%s\", the server \"%s\"",
                        path, theirs, ours);
  }
  return {};
}

Status check_place(const PoolHeader& header, uint32_t k, const char* path, Problem* problem) {
  if (header.memory_node == k) return {};
  return problem->set(Errc::kCorrupt, "%s is memory node %u of the pool, in the place of memory node %u", path,
                      header.memory_node, k);
}

Status check_part(const char* pool, uint32_t k, const PoolHeader& first, bool saved, Problem* problem) {
  MemoryPath path(pool, k);
  File file(::open(path.text, O_RDONLY | O_CLOEXEC));
  if (!file.open() && errno == ENOENT)
    return problem->set(Errc::kCorrupt, "memory node %u of pool %s is missing: there is no file %s", k, pool,
                        path.text);
  if (!file.open()) return problem->set(Errc::kSystem, "cannot open %s: %s", path.text, strerror(errno));
  auto header = std::make_unique<PoolHeader>();
  const Status read = read_header(file.fd(), path.text, header.get(), problem);
  if (read.error() == Errc::kCorrupt)
    return problem->set(Errc::kCorrupt, "%s is not a memory node of a pool", path.text);
  GCL_TRY(read);
  if (saved) GCL_TRY(check_saved_header(file.fd(), *header, k, pool, problem));
  if (header->format_version != first.format_version || header->pool_id != first.pool_id)
    return problem->set(Errc::kCorrupt, "%s belongs to another pool (%016llx) than %s (%016llx)", path.text,
                        static_cast<unsigned long long>(header->pool_id), pool,
                        static_cast<unsigned long long>(first.pool_id));
  GCL_TRY(check_place(*header, k, path.text, problem));
  if (header->bytes != first.memory_bytes[k])
    return problem->set(Errc::kCorrupt, "%s says that it has %llu bytes, and %s that it has %llu", path.text,
                        static_cast<unsigned long long>(header->bytes), pool,
                        static_cast<unsigned long long>(first.memory_bytes[k]));
  GCL_TRY(check_whole(file.fd(), *header, saved, path.text, problem));
  if (saved && header->saves != first.saves)
    return problem->set(Errc::kCorrupt, "%s is of another save of the pool (%llu) than %s (%llu)", path.text,
                        static_cast<unsigned long long>(header->saves), pool,
                        static_cast<unsigned long long>(first.saves));
  return {};
}

Status check_parts(const char* pool, const PoolHeader& first, bool saved, Problem* problem) {
  for (uint32_t k = 1; k < first.memory_nodes; k++) GCL_TRY(check_part(pool, k, first, saved, problem));
  return {};
}

void unlink_parts(const char* pool, uint32_t memory_nodes) {
  for (uint32_t k = 0; k < memory_nodes; k++) {  // the name that counts first
    unlink(MemoryPath(pool, k).text);
    unlink(MemoryPath(pool, k, true).text);
  }
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
    if (n == 0) errno = ENODATA;
    if (n <= 0) return false;
    to += n, at += uint64_t(n), bytes -= uint64_t(n);
  }
  return true;
}

uint64_t next_written(int fd, uint64_t at, uint64_t end) {
  const off_t data = lseek(fd, off_t(at), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? end : at;
  return uint64_t(data) / kFileChunk * kFileChunk;
}

bool sync_directory_of(const char* path) {
  char copy[560];
  snprintf(copy, sizeof copy, "%s", path);
  File directory(::open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory.open() && fsync(directory.fd()) == 0;
}

}  // namespace coherence
