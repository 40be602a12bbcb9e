// TlsStream: TLS over a non-blocking socket.
//
// The encrypted bytes lie in two buffers of its own, so that OpenSSL is never asked again to send the same bytes, and a
// read of the socket brings many records.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/credentials.hpp"

struct bio_st;
struct ssl_st;

namespace coherence::net {

class TlsStream {
 public:
  // Null: no memory.  The socket stays its caller's, and outlives it.
  static std::unique_ptr<TlsStream> make(const Credentials&, int fd, bool dials);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;

  // All as Connection's.
  Status handshake(Problem*);
  Result<size_t> read(std::span<std::byte> to, Problem*);
  Result<size_t> write(const iovec* pieces, int count, Problem*);
  // kWouldBlock: some bytes are left.
  Status flush(Problem*);
  bool unsent() const noexcept { return out_at_ < out_.size(); }
  bool pending() const noexcept;
  void readable() noexcept { drained_ = false; }
  void say_goodbye() noexcept;

  // OpenSSL's.
  int take_encrypted(char* to, int bytes) noexcept;
  int put_encrypted(const char* from, int bytes) noexcept;
  bool at_end() const noexcept { return at_end_; }

 private:
  static constexpr size_t kInBytes = 64 * 1024;
  static constexpr size_t kOutBytes = 64 * 1024;      // more is not encrypted before these are sent
  static constexpr size_t kOutMax = 4 * kOutBytes;    // a peer to which OpenSSL answers so much unread is cut off
  static constexpr size_t kHandshakeMax = 64 * 1024;  // bytes of a peer that has shown nothing yet
  static constexpr size_t kRecordBytes = 16 * 1024;

  TlsStream(int fd, bool has_key) noexcept : fd_(fd), has_key_(has_key) {}
  Errc failed(int result, Problem*) noexcept;
  bool proven() const noexcept;

  const int fd_;
  const bool has_key_;
  ssl_st* ssl_ = nullptr;
  bool shaken_ = false;   // hands
  bool drained_ = false;  // the socket had no more
  bool at_end_ = false;
  int error_ = 0;  // errno of the socket
  size_t heard_ = 0;
  std::unique_ptr<std::byte[]> in_;
  size_t in_at_ = 0, in_end_ = 0;
  std::vector<std::byte> out_;
  size_t out_at_ = 0;
};

}  // namespace coherence::net
