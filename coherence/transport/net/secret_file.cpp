#include "coherence/transport/net/secret_file.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace coherence::net {
namespace {

struct Descriptor {
  explicit Descriptor(int number) : fd(number) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  const int fd;
};

// As PostgreSQL's ssl_key_file: a file of the system's may be shared with a group of servers.
bool is_private(const struct stat& s) noexcept {
  if (s.st_uid == geteuid()) return (s.st_mode & 077) == 0;
  return s.st_uid == 0 && (s.st_mode & 037) == 0;
}

}  // namespace

SecretFile::~SecretFile() { OPENSSL_cleanse(text_, size_); }

// What is opened is what is looked at, and a pipe never holds the process up.
Status SecretFile::read(const char* path, Problem* problem) {
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.fd < 0)
    return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot open %.300s: %s", path,
                        strerror(errno));
  struct stat s;
  if (fstat(file.fd, &s) != 0) return problem->set(Errc::kSystem, "cannot stat %.300s: %s", path, strerror(errno));
  if (!S_ISREG(s.st_mode)) return problem->set(Errc::kIncompatible, "%.300s is no regular file", path);
  if (!is_private(s))
    return problem->set(
        Errc::kIncompatible,
        "%.300s has mode %04o: a secret belongs to the account of the server with mode 0600, or to root "
        "with 0640",
        path, unsigned(s.st_mode & 07777));
  while (size_ <= kMax) {
    const ssize_t n = ::read(file.fd, text_ + size_, sizeof text_ - size_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return problem->set(Errc::kSystem, "cannot read %.300s: %s", path, strerror(errno));
    if (n == 0) return {};
    size_ += size_t(n);
  }
  return problem->set(Errc::kIncompatible, "%.300s is too long for a key", path);
}

}  // namespace coherence::net
