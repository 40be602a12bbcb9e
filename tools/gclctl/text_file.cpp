#include "tools/gclctl/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "coherence/region/memory_file.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

constexpr mode_t kMode = 0666;  // but what the umask takes

[[noreturn]] void fail_to(const char* what, const fs::path& file) {
  fail("cannot {} {}: {}", what, file.string(), strerror(errno));
}

bool write_pieces(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(size_t(n));
  }
  return true;
}

}  // namespace

std::string read_text(const fs::path& path) {
  const coherence::File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) fail_to("read", path);
  std::string text;
  char some[4096];
  for (ssize_t n; (n = read(file.fd(), some, sizeof some)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_to("read", path);
    text.append(some, size_t(n));
  }
  return text;
}

// Beside it first, with the same mode.
void write_text(const fs::path& path, std::string_view text) {
  const fs::path fresh = path.string() + ".new";
  {
    struct stat before;
    const coherence::File file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
    if (!file.open()) fail_to("write", fresh);
    if (stat(path.c_str(), &before) == 0 && fchmod(file.fd(), before.st_mode & 07777) != 0) fail_to("write", fresh);
    if (!write_pieces(file.fd(), text) || fsync(file.fd()) != 0) {
      const int error = errno;
      unlink(fresh.c_str());
      errno = error;
      fail_to("write", fresh);
    }
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) fail_to("rename", fresh);
  if (!coherence::sync_directory_of(path.c_str())) fail_to("sync the directory of", path);
}

void append_text(const fs::path& path, std::string_view text) {
  const coherence::File file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode));
  if (!file.open() || !write_pieces(file.fd(), text)) fail_to("write", path);
}

}  // namespace gclctl
