#include "coherence/transport/net/listener.hpp"

#include <sys/epoll.h>

#include <utility>

namespace coherence::net {
namespace {

constexpr int kAcceptsMax = 16;  // connections accepted in one pass
constexpr uint64_t kPauseNs = 100'000'000;

}  // namespace

void Listener::ready(uint32_t, uint64_t now) {
  static_assert(kReadable == EPOLLIN);
  for (int i = 0; i < kAcceptsMax; i++) {
    Endpoint from;
    Result<Socket> socket = socket_.accept(&from);
    if (socket) {
      stood_still_ = false;
      loop_.take_in(socket.take(), from, now);
    } else if (socket.error() == Errc::kNoMemory) {
      // A connection that waits to be accepted makes epoll return at once, again and again.
      if (!std::exchange(stood_still_, true))
        loop_.log("no connection can be accepted: the process has no descriptor or memory left");
      loop_.forget(socket_.fd());
      events_ = 0;
      again_at_ = now + kPauseNs;
      return;
    } else if (socket.error() == Errc::kWouldBlock) {
      return;
    }
  }
}

void Listener::tick(uint64_t now) {
  if (now < again_at_) return;
  again_at_ = listen() ? kNever : now + kPauseNs;
}

}  // namespace coherence::net
