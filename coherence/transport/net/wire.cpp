#include "coherence/transport/net/wire.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace coherence::net {
namespace {

constexpr uint64_t kDelayMinNs = 10'000'000, kDelayMaxNs = 1'000'000'000;
constexpr size_t kPassBytes = 2u << 20;  // of one link in one pass; then the others have theirs

}  // namespace

Wire::Wire(LinkLoop& loop, std::unique_ptr<Link> link, const Endpoints* to) noexcept
    : loop_(loop), link_(std::move(link)), delay_ns_(kDelayMinNs) {
  if (to) to_ = *to;
}

Wire::~Wire() { disconnect(); }

void Wire::dial(uint64_t now) {
  Problem problem;
  auto made = Connection::dial(endpoint(), loop_.credentials(), &problem);
  give_up_at_ = now + loop_.spec().establish_ns;
  if (!made) return lost(problem.text, now);
  connection_ = made.take();
  go_on(now);
}

void Wire::take(std::unique_ptr<Connection> connection, const Hello& hello, uint64_t now) {
  if (!link_->over() && link_->is_late(hello)) return;  // the network has kept it back; the present one stays
  const bool again = begun_;
  if (link_->attached()) lost("it has connected anew", now);
  connection_ = std::move(connection);
  if (link_->over() || !link_->attach(hello, now)) {
    loop_.refuse(*connection_, Refusal::kUnknownLink, link_->reason(), now);
    return flush_or_disconnect(now);
  }
  begun_ = true;
  tell_connected(again, now);
  if (again)
    loop_.user().reconnected(*link_);
  else
    loop_.user().begun(*link_);
  flush_or_disconnect(now);
  ready(EPOLLIN, now);  // what came behind the greeting may be here already
}

// --- events

void Wire::ready(uint32_t events, uint64_t now) {
  if (link_->over()) return flush_or_disconnect(now);
  if (!connection_) return;
  if (events & ~uint32_t{EPOLLOUT}) connection_->readable();
  if (connection_->open()) {
    receive(now);
    flush_or_disconnect(now);
  } else {
    go_on(now);
  }
}

void Wire::go_on(uint64_t now) {
  Problem problem;
  const Status established = connection_->establish(&problem);
  if (established.error() == Errc::kWouldBlock) return look(now);
  if (!established) return lost(problem.text, now);
  link_->attach(now);
  flush_or_disconnect(now);
}

void Wire::receive(uint64_t now) {
  hungry_ = false;
  size_t left = kPassBytes;
  while (connection_ && link_->attached() && !link_->over()) {
    if (left == 0) {
      hungry_ = connection_->pending();
      return;
    }
    std::span<std::byte> room = link_->input();
    room = room.first(std::min(room.size(), left));
    Problem problem;
    const Result<size_t> got = connection_->read(room, &problem);
    if (got.error() == Errc::kWouldBlock) return;
    if (!got) return lost(problem.text, now);
    left -= *got;
    heard_at_ = now;
    link_->received(*got, now, *this);
  }
}

void Wire::frame(Link& link, uint16_t type, std::span<const std::byte> payload) {
  loop_.user().frame(link, type, payload);
}

void Wire::greeted(Link& link) {
  delay_ns_ = kDelayMinNs;
  std::fill(std::begin(said_), std::end(said_), 0);
  const bool again = std::exchange(begun_, true);
  tell_connected(again, heard_at_);
  if (again)
    loop_.user().reconnected(link);
  else
    loop_.user().begun(link);
}

void Wire::flush_or_disconnect(uint64_t now) {
  if (dead) return;
  if (!link_->over() && link_->take_room_made()) loop_.user().room(*link_);
  if (link_->over()) {
    if (connection_ && connection_->open()) write(now);  // why
    disconnect();
    loop_.over(*this);
  } else if (connection_ && connection_->open() && !link_->attached()) {
    char why[sizeof(Problem::text)];
    snprintf(why, sizeof why, "%s", link_->reason());
    lost(why, now);
  } else {
    flush(now);
  }
}

void Wire::flush(uint64_t now) {
  if (dead || !connection_ || !connection_->open()) return;
  write(now);
  if (connection_) look(now);
}

void Wire::write(uint64_t now) {
  while (link_->has_output() || (connection_->wants() & EPOLLOUT)) {
    iovec pieces[Link::kOutputPieces];
    const int count = link_->output(pieces);
    Problem problem;
    const Result<size_t> taken = connection_->write(pieces, count, &problem);
    if (taken.error() == Errc::kWouldBlock) return;
    if (!taken) return lost(problem.text, now);
    link_->sent(*taken);
  }
}

// --- connections that end

void Wire::disconnect() noexcept {
  if (!connection_) return;
  loop_.forget(connection_->fd());
  connection_.reset();
  events_ = 0;
  hungry_ = false;
}

void Wire::lost(const char* why, uint64_t now) { lost(why, now, begun_ && link_->connected()); }

void Wire::lost(const char* why, uint64_t now, bool was) {
  Problem line;
  line.write("%s at %s: %.200s", link_->peer().name().text,
             connection_ ? connection_->peer().name().text : endpoint().name().text, why);
  link_->detach(line.text, now);
  disconnect();
  retry_at_ = now + (was ? kDelayMinNs : delay_ns_);
  if (!was) delay_ns_ = std::min(2 * delay_ns_, kDelayMaxNs);
  if (was)
    say(line.text, now);
  else
    say_once(line.text, now);
  if (to_.count > 0 && !was) next_ = (next_ + 1) % to_.count;
  if (was && !link_->over()) loop_.user().disconnected(*link_);
}

void Wire::tell_connected(bool again, uint64_t now) {
  Problem line;
  line.write("%s at %s: %s", link_->peer().name().text, connection_->peer().name().text,
             again ? "connected again" : "connected");
  say(line.text, now);
}

void Wire::say(const char* line, uint64_t now) {
  uint64_t left_out = 0;
  if (!lines_.take(now, &left_out)) return;
  if (left_out == 0) return loop_.log("%s", line);
  loop_.log("%s (and %llu other lines before it)", line, static_cast<unsigned long long>(left_out));
}

void Wire::say_once(const char* line, uint64_t now) {
  const size_t hash = std::hash<std::string_view>()(line);
  if (std::exchange(said_[next_], hash) != hash) say(line, now);
}

void Wire::look(uint64_t now) {
  const uint32_t more = connection_->open() && link_->has_output() ? uint32_t{EPOLLOUT} : 0u;
  if (!loop_.look_for(connection_->fd(), *this, connection_->wants() | more, &events_))
    lost("no memory to wait for its socket", now);
}

// --- time

uint64_t Wire::due() const noexcept {
  if (dead) return kNever;
  if (hungry_ || link_->over()) return 0;
  uint64_t at = link_->deadline();
  if (connection_ && !link_->connected()) at = std::min(at, give_up_at_);
  if (!connection_ && to_.count > 0) at = std::min(at, retry_at_);
  return at;
}

void Wire::tick(uint64_t now) {
  if (dead) return;
  if (hungry_) receive(now);
  const bool was = begun_ && link_->connected();
  link_->tick(now);
  if (!link_->over() && was && !link_->connected()) {  // net.silence-breaks
    char why[sizeof(Problem::text)];
    snprintf(why, sizeof why, "%s", link_->reason());
    lost(why, now, true);
  } else if (!link_->over() && connection_ && !was && now >= give_up_at_) {
    char why[80];
    snprintf(why, sizeof why, "no answer for %.1f s", double(loop_.spec().establish_ns) / 1e9);
    lost(why, now);
  } else if (!link_->over() && !connection_ && to_.count > 0 && now >= retry_at_) {
    dial(now);
  }
  flush_or_disconnect(now);
}

}  // namespace coherence::net
