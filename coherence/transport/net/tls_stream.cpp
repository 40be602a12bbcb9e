#include "coherence/transport/net/tls_stream.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "coherence/base/verify.hpp"
#include "coherence/transport/net/tls_reason.hpp"

namespace coherence::net {
namespace {

TlsStream& stream_of(BIO* bio) noexcept { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

int bio_read(BIO* bio, char* to, int bytes) {
  BIO_clear_retry_flags(bio);
  const int n = stream_of(bio).take_encrypted(to, bytes);
  if (n < 0) BIO_set_retry_read(bio);
  return n;
}

int bio_write(BIO* bio, const char* from, int bytes) {
  BIO_clear_retry_flags(bio);
  return stream_of(bio).put_encrypted(from, bytes);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  return command == BIO_CTRL_EOF && stream_of(bio).at_end();
}

const BIO_METHOD* bio_method() noexcept {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gcl stream");
    if (!made) return made;
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

}  // namespace

std::unique_ptr<TlsStream> TlsStream::make(const Credentials& credentials, int fd, bool dials) {
  VERIFY(!credentials.is_plain());
  std::unique_ptr<TlsStream> stream(new (std::nothrow) TlsStream(fd, credentials.has_key()));
  if (!stream) return nullptr;
  stream->in_.reset(new (std::nothrow) std::byte[kInBytes]);
  stream->ssl_ = SSL_new(credentials.context());
  BIO* const bio = bio_method() ? BIO_new(bio_method()) : nullptr;
  if (!stream->in_ || !stream->ssl_ || !bio) {
    BIO_free(bio);
    return nullptr;
  }
  BIO_set_data(bio, stream.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(stream->ssl_, bio, bio);  // which frees it
  if (dials)
    SSL_set_connect_state(stream->ssl_);
  else
    SSL_set_accept_state(stream->ssl_);
  return stream;
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

// --- the encrypted side

// -1: later; 0: never again.
int TlsStream::take_encrypted(char* to, int bytes) noexcept {
  if (in_at_ == in_end_) {
    if (at_end_) return 0;
    if (drained_) return -1;
    const ssize_t n = recv(fd_, in_.get(), kInBytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
      drained_ = errno != EINTR;
      return -1;
    }
    if (n < 0) error_ = errno;
    heard_ += n > 0 ? size_t(n) : 0;
    at_end_ = n <= 0 || (!shaken_ && heard_ > kHandshakeMax);
    if (at_end_) return 0;
    drained_ = size_t(n) < kInBytes;
    in_at_ = 0;
    in_end_ = size_t(n);
  }
  const size_t taken = std::min(size_t(bytes), in_end_ - in_at_);
  memcpy(to, in_.get() + in_at_, taken);
  in_at_ += taken;
  return int(taken);
}

int TlsStream::put_encrypted(const char* from, int bytes) noexcept {
  if (out_.size() - out_at_ + size_t(bytes) > kOutMax) return -1;
  const auto* const begin = reinterpret_cast<const std::byte*>(from);
  out_.insert(out_.end(), begin, begin + bytes);
  return bytes;
}

Status TlsStream::flush(Problem* problem) {
  while (unsent()) {
    const ssize_t n = send(fd_, out_.data() + out_at_, out_.size() - out_at_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Errc::kWouldBlock;
    if (n < 0) return problem->set(Errc::kSystem, "the connection broke: %s", strerror(errno));
    out_at_ += size_t(n);
  }
  out_.clear();
  out_at_ = 0;
  return {};
}

bool TlsStream::pending() const noexcept { return in_at_ < in_end_ || SSL_has_pending(ssl_) != 0; }

// --- the plain side

Status TlsStream::handshake(Problem* problem) {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    if (!proven()) return problem->set(Errc::kIncompatible, "the handshake proves nothing");
    shaken_ = true;
    const Status flushed = flush(problem);
    return flushed.error() == Errc::kWouldBlock ? Status() : flushed;
  }
  const Errc error = failed(result, problem);
  Problem unheard;
  const Status flushed = flush(&unheard);  // an alert, too
  if (error == Errc::kWouldBlock && !flushed && flushed.error() != Errc::kWouldBlock) {
    *problem = unheard;
    return flushed;
  }
  return error;
}

// Belt and braces (net.tls13-only): OpenSSL was told to accept nothing else.
bool TlsStream::proven() const noexcept {
  if (SSL_version(ssl_) != TLS1_3_VERSION) return false;
  if (has_key_) return SSL_session_reused(ssl_) == 1;
  return SSL_get0_peer_certificate(ssl_) != nullptr && SSL_get_verify_result(ssl_) == X509_V_OK;
}

Errc TlsStream::failed(int result, Problem* problem) noexcept {
  const int kind = SSL_get_error(ssl_, result);
  if (kind == SSL_ERROR_WANT_READ) return Errc::kWouldBlock;
  if (kind == SSL_ERROR_ZERO_RETURN) return problem->set(Errc::kNotFound, "it closed the connection");
  if (!shaken_ && heard_ > kHandshakeMax) return problem->set(Errc::kIncompatible, "its handshake has no end");
  if (kind == SSL_ERROR_WANT_WRITE) return problem->set(Errc::kSystem, "it does not read what it asks for");
  if (error_ != 0) return problem->set(Errc::kSystem, "the connection broke: %s", strerror(error_));
  const bool cut = kind == SSL_ERROR_SYSCALL || ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  if (at_end_ && cut)
    return problem->set(Errc::kNotFound, shaken_ ? "the connection broke off" : "it hung up during the TLS handshake");
  if (!shaken_) return handshake_failed(ssl_, has_key_, problem);
  return tls_failed("TLS broke", problem);
}

Result<size_t> TlsStream::read(std::span<std::byte> to, Problem* problem) {
  ERR_clear_error();
  size_t bytes = 0;
  const int result = SSL_read_ex(ssl_, to.data(), to.size(), &bytes);
  if (result == 1) return bytes;
  const Errc error = failed(result, problem);
  if (error == Errc::kWouldBlock && unsent())  // OpenSSL answers in its own right
    if (const Status flushed = flush(problem); !flushed) return flushed.error();
  return error;
}

// Of what was taken some may have arrived, whatever breaks behind it: the next call meets that.
Result<size_t> TlsStream::write(const iovec* pieces, int count, Problem* problem) {
  if (unsent())
    if (const Status flushed = flush(problem); !flushed) return flushed.error();
  size_t taken = 0;
  for (int i = 0; i < count; i++) {
    for (size_t at = 0; at < pieces[i].iov_len;) {
      if (out_.size() - out_at_ >= kOutBytes) {
        const Status flushed = flush(problem);
        if (!flushed && taken > 0) return taken;
        if (!flushed) return flushed.error();
      }
      ERR_clear_error();
      size_t bytes = 0;
      const size_t record = std::min(pieces[i].iov_len - at, kRecordBytes);
      const int result = SSL_write_ex(ssl_, static_cast<const std::byte*>(pieces[i].iov_base) + at, record, &bytes);
      if (result != 1) {
        if (taken > 0) return taken;
        const Errc error = failed(result, problem);
        return error == Errc::kWouldBlock ? problem->set(Errc::kSystem, "TLS cannot write") : error;
      }
      at += bytes;
      taken += bytes;
    }
  }
  const Status flushed = flush(problem);
  if (taken > 0) return taken;
  return flushed ? Errc::kWouldBlock : flushed.error();
}

void TlsStream::say_goodbye() noexcept {
  Problem unheard;
  ERR_clear_error();
  if (shaken_) (void)SSL_shutdown(ssl_);
  (void)flush(&unheard);
  ERR_clear_error();
}

}  // namespace coherence::net
