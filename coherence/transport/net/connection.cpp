#include "coherence/transport/net/connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace coherence::net {

Result<std::unique_ptr<Connection>> Connection::dial(const Endpoint& to, const Credentials& credentials,
                                                     Problem* problem) {
  GCL_TRY(credentials.fit(to.local(), to.name().text, problem));
  Result<Socket> socket = Socket::connecting(to, problem);
  if (!socket) return socket.error();
  std::unique_ptr<Connection> made(new (std::nothrow) Connection(socket.take(), to, Stage::kConnecting));
  if (!made) return Errc::kNoMemory;
  GCL_TRY(made->protect(credentials, true, problem));
  return made;
}

Result<std::unique_ptr<Connection>> Connection::accepted(Socket socket, const Endpoint& from,
                                                         const Credentials& credentials, Problem* problem) {
  GCL_TRY(credentials.fit(from.local(), from.name().text, problem));
  std::unique_ptr<Connection> made(new (std::nothrow) Connection(std::move(socket), from, Stage::kHandshake));
  if (!made) return Errc::kNoMemory;
  GCL_TRY(made->protect(credentials, false, problem));
  return made;
}

Status Connection::protect(const Credentials& credentials, bool dials, Problem* problem) {
  if (credentials.is_plain()) return {};
  tls_ = TlsStream::make(credentials, fd(), dials);
  return tls_ ? Status() : problem->set(Errc::kNoMemory, "no memory for a TLS connection");
}

Connection::~Connection() {
  if (tls_ && stage_ != Stage::kConnecting) tls_->say_goodbye();
}

Status Connection::establish(Problem* problem) {
  if (stage_ == Stage::kConnecting) {
    GCL_TRY(socket_.finish_connecting(problem));
    stage_ = Stage::kHandshake;
  }
  if (stage_ == Stage::kHandshake) {
    if (tls_) {
      tls_->readable();
      GCL_TRY(tls_->handshake(problem));
    } else if (peer_.family() == AF_UNIX && !socket_.of_same_account()) {
      return problem->set(Errc::kIncompatible, "its process is of another account");
    }
    stage_ = Stage::kOpen;
  }
  return {};
}

uint32_t Connection::wants() const noexcept {
  if (stage_ == Stage::kConnecting) return EPOLLOUT;
  return EPOLLIN | (tls_ && tls_->unsent() ? uint32_t{EPOLLOUT} : 0u);
}

void Connection::readable() noexcept {
  drained_ = false;
  if (tls_) tls_->readable();
}

Result<size_t> Connection::read(std::span<std::byte> to, Problem* problem) {
  if (tls_) return tls_->read(to, problem);
  if (drained_) return Errc::kWouldBlock;
  const ssize_t n = recv(fd(), to.data(), to.size(), MSG_DONTWAIT);
  if (n == 0) return problem->set(Errc::kNotFound, "it closed the connection");
  if (n > 0) {
    drained_ = size_t(n) < to.size();
    return size_t(n);
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Errc::kWouldBlock;
  return problem->set(Errc::kSystem, "the connection broke: %s", strerror(errno));
}

Result<size_t> Connection::write(const iovec* pieces, int count, Problem* problem) {
  if (tls_) return tls_->write(pieces, count, problem);
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(pieces);
  message.msg_iovlen = size_t(count);
  const ssize_t n = sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n > 0) return size_t(n);
  if (n == 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Errc::kWouldBlock;
  return problem->set(Errc::kSystem, "the connection broke: %s", strerror(errno));
}

}  // namespace coherence::net
