// Connection: one stream of bytes to a peer, plain or TLS, over a socket that never makes its caller wait.
//
// net.no-byte-first: No byte of the peer is given to the caller before TLS has proven that it belongs to the cluster
// (tcp.key-first).  A plain one is local, and over a unix socket the peer is of the same account, or root's.
//
//   auto connection = Connection::dial(endpoint, credentials, &problem);
//   ... epoll says that it is ready for wants() ...
//   Status established = connection->establish(&problem);   // until it is not kWouldBlock
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/address.hpp"
#include "coherence/transport/net/credentials.hpp"
#include "coherence/transport/net/socket.hpp"
#include "coherence/transport/net/tls_stream.hpp"

namespace coherence::net {

class Connection {
 public:
  // kIncompatible: net.plain-is-local; kSystem, kNoMemory.
  static Result<std::unique_ptr<Connection>> dial(const Endpoint&, const Credentials&, Problem*);
  static Result<std::unique_ptr<Connection>> accepted(Socket, const Endpoint& from, const Credentials&, Problem*);
  ~Connection();  // says goodbye, as far as that does not wait
  Connection(const Connection&) = delete;

  int fd() const noexcept { return socket_.fd(); }
  const Endpoint& peer() const noexcept { return peer_; }
  bool open() const noexcept { return stage_ == Stage::kOpen; }

  // Goes on with connecting and the handshake.  kWouldBlock: wants() says for what it waits.  kIncompatible: the peer
  // is refused, or refuses; kSystem, kNotFound: the network.
  Status establish(Problem*);
  // What epoll is to look for, beside EPOLLOUT when the caller has more to write than was taken.
  uint32_t wants() const noexcept;
  // Epoll said that there is something to read.
  void readable() noexcept;

  // REQUIRES: open.  At least one byte, or kWouldBlock; kNotFound: the peer closed it; kSystem.
  Result<size_t> read(std::span<std::byte> to, Problem*);
  // How many were taken, at least one; or kWouldBlock, kNotFound, kSystem: then none were.  What was not taken has not
  // arrived, and will not.
  Result<size_t> write(const iovec* pieces, int count, Problem*);
  // There are bytes to read of which epoll does not know.
  bool pending() const noexcept { return tls_ && tls_->pending(); }

 private:
  enum class Stage : uint8_t { kConnecting, kHandshake, kOpen };
  Connection(Socket socket, const Endpoint& peer, Stage stage) noexcept
      : socket_(std::move(socket)), peer_(peer), stage_(stage) {}
  Status protect(const Credentials&, bool dials, Problem*);

  Socket socket_;
  const Endpoint peer_;
  std::unique_ptr<TlsStream> tls_;
  Stage stage_;
  bool drained_ = false;  // plain: the socket had no more
};

}  // namespace coherence::net
