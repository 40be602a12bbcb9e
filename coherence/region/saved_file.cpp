#include "coherence/region/saved_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "coherence/region/checksums.hpp"
#include "coherence/region/memory_file.hpp"

namespace coherence {
namespace {

Errc failed(const char* what, const MemoryPath& path, Problem* problem) {
  return problem->set(errno == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot %s pool file %s: %s", what, path.text,
                      strerror(errno));
}

}  // namespace

// Where the checksums lie says the file's size, not the header that they are to prove.  If they are not there, the two
// may differ because the file was cut off.
Status check_saved_header(int fd, const PoolHeader& header, uint32_t k, const char* pool, Problem* problem) {
  const MemoryPath path(pool, k);
  struct stat s;
  if (fstat(fd, &s) != 0) return failed("stat", path, problem);
  const uint64_t bytes = bytes_of_saved(uint64_t(s.st_size));
  if (bytes == 0) return {};
  const auto block = std::make_unique<std::byte[]>(kBlockBytes);
  const auto damage = std::make_unique<Damage>();
  const auto reader = std::make_unique<ChecksumReader>(fd, k, bytes, *damage);
  if (!read_all(fd, block.get(), kBlockBytes, 0) || !reader->check(0, block.get(), kBlockBytes))
    return failed("read", path, problem);
  if (damage->bad == 0 || (!reader->sound() && bytes != header.bytes)) return {};
  return damage->tell(pool, problem);
}

Status read_saved_header(int fd, const char* pool, PoolHeader* header, Problem* problem) {
  GCL_TRY(read_header(fd, pool, header, problem));
  GCL_TRY(check_format(*header, pool, problem));
  return check_saved_header(fd, *header, 0, pool, problem);
}

Status read_saved(int from, uint32_t k, const char* pool, int to, Damage* damage, Problem* problem) {
  const MemoryPath path(pool, k);
  struct stat s;
  if (fstat(from, &s) != 0) return failed("stat", path, problem);
  const uint64_t bytes = bytes_of_saved(uint64_t(s.st_size));
  if (bytes == 0)
    return problem->set(Errc::kCorrupt, "%s is not a whole pool file: it has %llu bytes", path.text,
                        static_cast<unsigned long long>(s.st_size));
  const auto chunk = std::make_unique<std::byte[]>(kFileChunk);
  const auto reader = std::make_unique<ChecksumReader>(from, k, bytes, *damage);
  for (uint64_t at = 0; (at = next_written(from, at, bytes)) < bytes; at += kFileChunk) {
    const uint64_t piece = bytes - at < kFileChunk ? bytes - at : kFileChunk;
    if (!read_all(from, chunk.get(), piece, at) || !reader->check(at, chunk.get(), piece))
      return failed("read", path, problem);
    if (to >= 0 && damage->bad == 0 && !write_all(to, chunk.get(), piece, at))
      return problem->set(errno == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot copy pool file %s into memory: %s",
                          path.text, strerror(errno));
  }
  return reader->finish() ? Status() : failed("read", path, problem);
}

// A file that is missing, or whose header is bad, hinders no look at the others.
Status verify_saved(const char* durable_path, Damage* damage, Problem* problem) {
  auto first = std::make_unique<PoolHeader>();
  uint32_t count = kMemoryNodesMax;
  Status ok;
  for (uint32_t k = 0; k < count; k++) {
    const MemoryPath path(durable_path, k);
    File file(::open(path.text, O_RDONLY | O_CLOEXEC));
    if (!file.open() && k > 0 && errno == ENOENT) continue;
    if (!file.open())
      return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot open pool file %s: %s", path.text,
                          strerror(errno));
    if (k == 0) {
      GCL_TRY(read_header(file.fd(), path.text, first.get(), problem));
      GCL_TRY(check_format(*first, path.text, problem));
      ok = check_saved_header(file.fd(), *first, 0, durable_path, problem);
      if (ok) ok = check_header(*first, nullptr, durable_path, problem);
      if (ok) count = first->memory_nodes.load();
      if (ok) ok = check_whole(file.fd(), *first, true, path.text, problem);
      if (ok) ok = check_parts(durable_path, *first, true, problem);
    }
    Problem later;
    Status read = read_saved(file.fd(), k, durable_path, -1, damage, ok ? problem : &later);
    if (ok && !read) ok = read;
  }
  return damage->bad > 0 ? damage->tell(durable_path, problem) : ok;
}

}  // namespace coherence
