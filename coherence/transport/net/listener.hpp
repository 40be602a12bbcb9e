// Listener: a socket at which peers connect.
#pragma once

#include <cstdint>
#include <utility>

#include "coherence/transport/net/link_loop.hpp"

namespace coherence::net {

class Listener final : public Source {
 public:
  Listener(LinkLoop& loop, Socket socket) noexcept : loop_(loop), socket_(std::move(socket)) {}
  uint16_t port() const noexcept { return socket_.port(); }
  bool listen() noexcept { return loop_.look_for(socket_.fd(), *this, kReadable, &events_); }

  void ready(uint32_t events, uint64_t now) override;
  void tick(uint64_t now) override;
  uint64_t due() const noexcept override { return again_at_; }

 private:
  static constexpr uint32_t kReadable = 1;  // EPOLLIN
  LinkLoop& loop_;
  Socket socket_;
  uint32_t events_ = 0;
  uint64_t again_at_ = kNever;  // it stands still until then
  bool stood_still_ = false;    // and nobody was accepted since
};

}  // namespace coherence::net
