// Links: all links of a process, with their sockets, in one epoll set.  One thread; nothing here waits but wait().
//
// net.half-open-bounded: Connections that have not shown who they are yet are few, have little memory and little time.
// When there are too many, the oldest of the host that has most of them goes.
// net.said-once: A peer that cannot be reached, or is refused, is a line in the log when that begins and when the
// reason changes, not with every attempt.
// net.tools-may-be-silent: A tool may be busy for long, and look at its link only between two calls.  What tells
// sooner that its machine is gone is the system's keepalive.
// net.logged-escaped: What a peer says reaches the log escaped and cut off.
//
//   class Server : public LinksUser { ... };
//   auto links = Links::make({.self = Who::memory_node(id, start)}, credentials, server, problem);
//   links->listen(address, problem);
//   while (!ended) links->wait(1000);
//
// A primary:
//   Link* link = links->dial(Who::memory_node(id, 0), endpoints, problem).take();
//   link->send(kBatch, pieces);       // any time; the next wait() or flush() sends it
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/address.hpp"
#include "coherence/transport/net/credentials.hpp"
#include "coherence/transport/net/link.hpp"
#include "coherence/transport/net/who.hpp"

namespace coherence::net {

class LinkLoop;

// Hears what happens; all calls come from within wait() and flush().
class LinksUser : public FrameSink {
 public:
  virtual void begun(Link&) {}         // a peer has begun a link here; or one that was dialed has its first connection
  virtual void disconnected(Link&) {}  // reason() says why; it goes on when there is a connection again
  virtual void reconnected(Link&) {}
  virtual void room(Link&) {}  // send() had no room and may have some now
  // The last call about this link: it is gone when this returns.  ending() and reason() say why.
  virtual void over(Link&) = 0;
  virtual void ready(int fd) { (void)fd; }  // of watch()
  virtual void log(const char* line) = 0;   // names the peer; safe to print

 protected:
  ~LinksUser() = default;
};

class Links {
 public:
  struct Spec {
    Who self;                               // REQUIRES: start is not 0
    uint64_t cluster = 0;                   // both sides say the same, or refuse each other; 0, of a tool: any
    uint32_t window = 4u << 20;             // bytes of a link that may be sent and not acknowledged; a power of two
    int links_max = 256;                    // that peers have begun here
    bool again = false;                     // net.one-link-per-start: one may have another when its last one is over
    int half_open_max = 64;                 // net.half-open-bounded
    uint64_t establish_ns = 5'000'000'000;  // to connect, for the handshake and for the hellos, all together
    LinkTimes times = {};
    uint64_t tool_silence_ns = 600'000'000'000;  // net.tools-may-be-silent
  };
  // `user` outlives it.  kSystem, kNoMemory.
  static Result<std::unique_ptr<Links>> make(const Spec&, Credentials, LinksUser& user, Problem*);
  ~Links();  // closes all; nobody hears of it
  Links(const Links&) = delete;

  // May be called several times.  kIncompatible: net.plain-is-local; kBusy: somebody listens there; kSystem.
  Status listen(const Endpoints&, Problem*);
  uint16_t port() const noexcept;  // of the first TCP listener: what the system chose for port 0

  // Begins a link; connects in wait(), and again whenever the connection breaks.  peer.start 0: whichever it is.
  // kIncompatible: net.plain-is-local; kNoMemory.
  Result<Link*> dial(const Who& peer, const Endpoints&, Problem*);

  // For connections from now on.
  void renew(Credentials) noexcept;

  // Sends what is queued, receives what is there, and does what is due.  Sleeps `ms` at most, if there is nothing to do
  // (0: not at all; -1: without an end).  Returns whether anything happened.
  bool wait(int ms);
  // Sends what is queued, as far as the sockets take it.
  void flush();
  // wait() returns, and ready() is called, when `fd` is readable.  The caller takes what makes it so.
  Status watch(int fd, Problem*);
  // Readable when wait(0) would do something because of a socket; for a poll of somebody else.  It does not know of
  // time: wait_ms() says when to call wait() at the latest.
  int fd() const noexcept;
  int wait_ms() const noexcept;

 private:
  explicit Links(std::unique_ptr<LinkLoop>) noexcept;
  const std::unique_ptr<LinkLoop> loop_;
};

}  // namespace coherence::net
