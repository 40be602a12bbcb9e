// TlsStream: what it says of a connection that breaks while it writes.
#include "coherence/transport/net/tls_stream.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "certificates.hpp"
#include "coherence/base/os.hpp"
#include "tests/support/longer.hpp"

namespace coherence::net {
namespace {

constexpr uint64_t kGiveUpNs = 10'000'000'000;

// Two streams that have shaken hands.
class TlsStreamTest : public testing::Test {
 protected:
  void connect() {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd_), 0);
    writes_ = TlsStream::make(credentials_, fd_[0], true);
    reads_ = TlsStream::make(credentials_, fd_[1], false);
    bool shaken[2] = {};
    for (const uint64_t until = monotonic_ns() + kGiveUpNs; !shaken[0] || !shaken[1];) {
      ASSERT_LT(monotonic_ns(), until);
      for (TlsStream* one : {writes_.get(), reads_.get()}) {
        one->readable();
        shaken[one == reads_.get()] |= one->handshake(&problem_).ok();
      }
    }
  }
  void disconnect() {
    writes_.reset();
    reads_.reset();
    close(fd_[0]);
  }
  // Until something has come; then the connection is gone.  How many bytes have.
  size_t read_and_break() {
    std::vector<std::byte> bytes(1 << 20);
    size_t came = 0;
    for (const uint64_t until = monotonic_ns() + kGiveUpNs; came == 0 && monotonic_ns() < until;) {
      reads_->readable();
      Problem problem;
      for (auto got = reads_->read(bytes, &problem); got; got = reads_->read(bytes, &problem)) came += *got;
    }
    close(fd_[1]);
    return came;
  }
  // Until the connection is gone.  How many bytes were taken.
  size_t write_all() {
    const std::vector<std::byte> bytes(4 << 20);
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    size_t taken = 0;
    for (const uint64_t until = monotonic_ns() + kGiveUpNs; monotonic_ns() < until;) {
      const auto more = writes_->write(&piece, 1, &problem_);
      if (!more && more.error() != Errc::kWouldBlock) break;
      if (more) taken += *more;
      if (!more) sched_yield();
    }
    return taken;
  }

  gcl_test::SecretDirectory directory_;
  Credentials credentials_ = gcl_test::with_key(directory_, '7');
  Problem problem_;
  int fd_[2] = {-1, -1};
  std::unique_ptr<TlsStream> writes_, reads_;
};

// A link counts as sent what its connection took.  When the other side has more of it, the two sides do not agree about
// what arrived, and the link is over for good.
TEST_F(TlsStreamTest, WhatHasArrivedWasTakenThoughTheConnectionBrokeMeanwhile) {
  const int rounds = 100 * gcl_test::longer();
  for (int round = 0; round < rounds; round++) {
    connect();
    if (HasFatalFailure()) return;
    size_t came = 0;
    std::thread other([&] { came = read_and_break(); });
    const size_t taken = write_all();
    other.join();
    ASSERT_GT(came, 0u);
    ASSERT_LE(came, taken) << "round " << round;
    disconnect();
  }
}

}  // namespace
}  // namespace coherence::net
