// Wire: a link, and the connection that it has at the moment.
#pragma once

#include <cstdint>
#include <memory>

#include "coherence/transport/net/link_loop.hpp"

namespace coherence::net {

class Wire final : public Source, private FrameSink {
 public:
  Wire(LinkLoop& loop, std::unique_ptr<Link> link, const Endpoints* to) noexcept;
  ~Wire() override;

  Link& link() noexcept { return *link_; }
  const Link& link() const noexcept { return *link_; }
  // A connection that was accepted, for this link.
  void take(std::unique_ptr<Connection>, const Hello&, uint64_t now);
  void flush(uint64_t now);
  // After a call of the user's, or anything else that may have ended the link or its connection.
  void flush_or_disconnect(uint64_t now);

  void ready(uint32_t events, uint64_t now) override;
  void tick(uint64_t now) override;
  uint64_t due() const noexcept override;

 private:
  void frame(Link&, uint16_t type, std::span<const std::byte> payload) override;
  void greeted(Link&) override;
  void dial(uint64_t now);
  void go_on(uint64_t now);
  void receive(uint64_t now);
  void write(uint64_t now);
  void lost(const char* why, uint64_t now);
  void lost(const char* why, uint64_t now, bool was);  // connected, a moment ago
  void disconnect() noexcept;
  void look(uint64_t now);
  void tell_connected(bool again, uint64_t now);
  void say(const char* line, uint64_t now);
  void say_once(const char* line, uint64_t now);
  const Endpoint& endpoint() const noexcept { return to_.at[next_]; }

  LinkLoop& loop_;
  const std::unique_ptr<Link> link_;
  std::unique_ptr<Connection> connection_;
  uint32_t events_ = 0;                // in the epoll set
  bool begun_ = false;                 // the user knows of it
  bool hungry_ = false;                // there is more to read than was read in one pass
  Endpoints to_;                       // count 0: it was accepted
  int next_ = 0;                       // of to_
  uint64_t heard_at_ = 0;              // in this pass
  LogBudget lines_;                    // a connection that breaks again and again does not fill the log
  uint64_t retry_at_ = 0;              // dialed
  uint64_t delay_ns_;                  // before the next attempt but one
  uint64_t give_up_at_ = 0;            // on a connection that is not established
  size_t said_[Endpoints::kMax] = {};  // hashes of the last lines about to_ (net.said-once)
};

}  // namespace coherence::net
