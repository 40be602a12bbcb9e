// Socket: the calls of the operating system for streams that never make their caller wait.
#pragma once

#include <cstdint>
#include <utility>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/address.hpp"

namespace coherence::net {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) noexcept : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int fd() const noexcept { return fd_; }
  bool open() const noexcept { return fd_ >= 0; }

  // Begins to connect; finish_connecting() says when it is done.  kSystem, kNoMemory.
  static Result<Socket> connecting(const Endpoint&, Problem*);
  Status finish_connecting(Problem*) const;  // kWouldBlock, kSystem
  // A unix socket is its owner's alone, and takes the place of one that nobody listens at any more.  kBusy, kSystem.
  static Result<Socket> listening(const Endpoint&, Problem*);
  // kWouldBlock; kNoMemory: no descriptor is left; kSystem: this one went away, there may be others.
  Result<Socket> accept(Endpoint* from) const;
  // Whether the process at the other end of this unix socket is of the same account, or root's.
  bool of_same_account() const noexcept;
  uint16_t port() const noexcept;  // this end's

 private:
  int fd_ = -1;
};

}  // namespace coherence::net
