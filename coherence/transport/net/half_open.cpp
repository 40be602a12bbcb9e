#include "coherence/transport/net/half_open.hpp"

#include <cstdio>

namespace coherence::net {

void HalfOpen::drop() noexcept {
  if (!connection_) return;
  loop_.forget(connection_->fd());
  connection_.reset();
}

void HalfOpen::give_up(const char* why, uint64_t now) {
  loop_.log_refused(peer_, why, now);
  drop();
  dead = true;
}

void HalfOpen::ready(uint32_t, uint64_t now) {
  connection_->readable();
  if (!connection_->open()) {
    Problem problem;
    const Status established = connection_->establish(&problem);
    if (!established && established.error() != Errc::kWouldBlock) return give_up(problem.text, now);
  }
  if (connection_->open()) {
    if (!read_up_to(kHeadBytes, now)) return;
    Problem problem;
    Status read = check_head(std::span(hello_).first<kHeadBytes>(), &problem);
    Hello hello;
    if (read) {
      if (!read_up_to(kHelloBytes, now)) return;
      read = read_hello(hello_, &hello, &problem);
    }
    if (read) {
      loop_.forget(connection_->fd());
      dead = true;
      return loop_.greeted(std::move(connection_), hello, now);
    }
    if (read.error() == Errc::kIncompatible) loop_.refuse(*connection_, Refusal::kVersion, problem.text, now);
    return give_up(problem.text, now);
  }
  if (!loop_.look_for(connection_->fd(), *this, connection_->wants(), &events_)) give_up("no memory", now);
}

// False: they are not there yet, or it is dead.
bool HalfOpen::read_up_to(size_t bytes, uint64_t now) {
  while (got_ < bytes) {
    Problem problem;
    const Result<size_t> n = connection_->read(std::span(hello_).subspan(got_, bytes - got_), &problem);
    if (n) {
      got_ += *n;
      continue;
    }
    if (n.error() != Errc::kWouldBlock)
      give_up(problem.text, now);
    else if (!loop_.look_for(connection_->fd(), *this, connection_->wants(), &events_))
      give_up("no memory", now);
    return false;
  }
  return true;
}

void HalfOpen::tick(uint64_t now) {
  if (now < due()) return;
  char why[80];
  snprintf(why, sizeof why, "it did not say who it is for %.1f s", double(loop_.spec().establish_ns) / 1e9);
  give_up(why, now);
}

}  // namespace coherence::net
