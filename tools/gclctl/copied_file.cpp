#include "tools/gclctl/copied_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "coherence/base/crc32c.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

constexpr uint64_t kChunk = 1 << 20;

std::string path_of(const coherence::File& file) {
  const int error = errno;
  std::error_code unknown;
  const fs::path path = fs::read_symlink(fmt::format("/proc/self/fd/{}", file.fd()), unknown);
  errno = error;
  return path.string();
}

// Calls take(bytes, count, at) for each piece of the file's first `bytes`, and returns how many there were.
template <class Take>
uint64_t read_pieces(const coherence::File& from, uint64_t bytes, Take take) {
  std::vector<std::byte> chunk(kChunk);
  uint64_t at = 0;
  while (at < bytes) {
    const ssize_t got = pread(from.fd(), chunk.data(), std::min(kChunk, bytes - at), off_t(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read {}: {}", path_of(from), strerror(errno));
    if (got == 0) break;
    take(chunk.data(), uint64_t(got), at);
    at += uint64_t(got);
  }
  return at;
}

bool only_zeros(const std::byte* bytes, uint64_t count) {
  return std::all_of(bytes, bytes + count, [](std::byte one) { return one == std::byte{0}; });
}

void add_zeros(FileSum* sum, uint64_t upto) {
  const std::vector<std::byte> zeros(kChunk);
  while (sum->bytes < upto) {
    const uint64_t count = std::min(kChunk, upto - sum->bytes);
    sum->crc32c = coherence::crc32c(sum->crc32c, zeros.data(), count);
    sum->bytes += count;
  }
}

}  // namespace

std::unique_ptr<coherence::File> open_to_read(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("cannot read {}: {}", path.string(), strerror(errno));
  return std::make_unique<coherence::File>(fd);
}

// A pool's file has long holes.
FileSum copy_open_file(const coherence::File& from, const fs::path& to, uint64_t bytes, uint64_t padded_to) {
  const coherence::File out(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out.open()) fail("cannot make {}: {}", to.string(), strerror(errno));
  FileSum sum;
  sum.bytes = read_pieces(from, bytes, [&](const std::byte* piece, uint64_t count, uint64_t at) {
    sum.crc32c = coherence::crc32c(sum.crc32c, piece, count);
    if (!only_zeros(piece, count) && !coherence::write_all(out.fd(), piece, count, at))
      fail("cannot write {}: {}", to.string(), strerror(errno));
  });
  if (bytes != kWholeFile && sum.bytes != bytes)
    fail("{} was to have {} bytes, and only {} were there to be copied", to.string(), bytes, sum.bytes);
  add_zeros(&sum, padded_to);
  if (ftruncate(out.fd(), off_t(sum.bytes)) != 0 || fsync(out.fd()) != 0)
    fail("cannot write {}: {}", to.string(), strerror(errno));
  return sum;
}

FileSum copy_summed(const fs::path& from, const fs::path& to) { return copy_open_file(*open_to_read(from), to); }

FileSum sum_of(const fs::path& path) {
  FileSum sum;
  sum.bytes = read_pieces(*open_to_read(path), kWholeFile, [&](const std::byte* piece, uint64_t count, uint64_t) {
    sum.crc32c = coherence::crc32c(sum.crc32c, piece, count);
  });
  return sum;
}

}  // namespace gclctl
