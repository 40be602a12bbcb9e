#include "coherence/transport/net/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace coherence::net {
namespace {

// A host that is gone without a word: seconds until the system says so.
constexpr int kKeepIdle = 5, kKeepInterval = 2, kKeepCount = 5;
constexpr unsigned kUnacknowledgedMs = 15'000;
constexpr int kBacklog = 128;

void set(int fd, int level, int option, int value) noexcept { setsockopt(fd, level, option, &value, sizeof value); }

// None of these is worth a refusal where it is missing.
void tune(int fd, int family) noexcept {
  if (family == AF_UNIX) return;
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdle);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepInterval);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
}

bool out_of_resources(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

Errc failed(const char* what, const Endpoint& at, int error, Problem* problem) {
  const Errc code = error == EADDRINUSE ? Errc::kBusy : out_of_resources(error) ? Errc::kNoMemory : Errc::kSystem;
  return problem->set(code, "cannot %s %s: %s", what, at.name().text, strerror(error));
}

// Whether a socket lies at this path that no process listens at.
bool deserted(const Endpoint& at) noexcept {
  const auto* const path = reinterpret_cast<const sockaddr_un*>(&at.at)->sun_path;
  struct stat s;
  if (lstat(path, &s) != 0 || !S_ISSOCK(s.st_mode)) return false;
  const Socket probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe.open() && connect(probe.fd(), at.raw(), at.bytes) != 0 && errno == ECONNREFUSED;
}

bool same(const Endpoint& a, const Endpoint& b) noexcept { return a.same_host(b) && a.port() == b.port(); }

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Result<Socket> Socket::connecting(const Endpoint& to, Problem* problem) {
  Socket made(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.open()) return failed("make a socket for", to, errno, problem);
  tune(made.fd_, to.family());
  if (connect(made.fd_, to.raw(), to.bytes) != 0 && errno != EINPROGRESS && errno != EINTR)
    return failed("connect to", to, errno, problem);
  return made;
}

Status Socket::finish_connecting(Problem* problem) const {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  if (error != 0) return problem->set(Errc::kSystem, "cannot connect: %s", strerror(error));
  Endpoint there, here;
  there.bytes = here.bytes = sizeof there.at;
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&there.at), &there.bytes) != 0)
    return errno == ENOTCONN ? Errc::kWouldBlock : problem->set(Errc::kSystem, "cannot connect: %s", strerror(errno));
  if (there.family() == AF_UNIX) return {};
  // Where nobody listens at a port that the system also gives to sockets that dial, it may connect one to itself.
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&here.at), &here.bytes) == 0 && same(there, here))
    return problem->set(Errc::kSystem, "cannot connect: nobody listens there");
  return {};
}

Result<Socket> Socket::listening(const Endpoint& at, Problem* problem) {
  Socket made(socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.open()) return failed("make a socket for", at, errno, problem);
  const bool is_unix = at.family() == AF_UNIX;
  const char* const path = is_unix ? reinterpret_cast<const sockaddr_un*>(&at.at)->sun_path : nullptr;
  if (!is_unix) set(made.fd_, SOL_SOCKET, SO_REUSEADDR, 1);
  if (at.family() == AF_INET6) set(made.fd_, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  int error = bind(made.fd_, at.raw(), at.bytes) == 0 ? 0 : errno;
  if (error == EADDRINUSE && is_unix && deserted(at)) {
    unlink(path);
    error = bind(made.fd_, at.raw(), at.bytes) == 0 ? 0 : errno;
  }
  if (error != 0) return failed("listen at", at, error, problem);
  // Nobody can connect before listen().
  if (is_unix && chmod(path, 0600) != 0) return failed("listen at", at, errno, problem);
  if (listen(made.fd_, kBacklog) != 0) return failed("listen at", at, errno, problem);
  return made;
}

Result<Socket> Socket::accept(Endpoint* from) const {
  from->bytes = sizeof from->at;
  Socket made(accept4(fd_, reinterpret_cast<sockaddr*>(&from->at), &from->bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (made.open()) {
    tune(made.fd_, from->family());
    return made;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return Errc::kWouldBlock;
  return out_of_resources(errno) ? Errc::kNoMemory : Errc::kSystem;
}

bool Socket::of_same_account() const noexcept {
  ucred other;
  socklen_t bytes = sizeof other;
  if (getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0) return false;
  return other.uid == geteuid() || other.uid == 0;
}

uint16_t Socket::port() const noexcept {
  Endpoint here;
  here.bytes = sizeof here.at;
  return getsockname(fd_, reinterpret_cast<sockaddr*>(&here.at), &here.bytes) == 0 ? here.port() : 0;
}

}  // namespace coherence::net
