// HalfOpen: a connection that was accepted and has yet to prove itself and to greet (net.half-open-bounded).
#pragma once

#include <cstdint>
#include <memory>

#include "coherence/transport/net/link_loop.hpp"

namespace coherence::net {

class HalfOpen final : public Source {
 public:
  HalfOpen(LinkLoop& loop, std::unique_ptr<Connection> connection, uint64_t now) noexcept
      : loop_(loop), connection_(std::move(connection)), since_(now) {}
  ~HalfOpen() override { drop(); }

  const Endpoint& peer() const noexcept { return peer_; }
  uint64_t since() const noexcept { return since_; }
  void give_up(const char* why, uint64_t now);

  void ready(uint32_t events, uint64_t now) override;
  void tick(uint64_t now) override;
  uint64_t due() const noexcept override { return dead ? kNever : since_ + loop_.spec().establish_ns; }

 private:
  void drop() noexcept;
  bool read_up_to(size_t bytes, uint64_t now);

  LinkLoop& loop_;
  std::unique_ptr<Connection> connection_;
  const Endpoint peer_ = connection_->peer();
  const uint64_t since_;
  uint32_t events_ = 0;
  std::byte hello_[kHelloBytes];
  size_t got_ = 0;
};

}  // namespace coherence::net
