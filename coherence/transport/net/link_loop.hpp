// LinkLoop: what is behind Links: sources of events in one epoll set, and what they belong to.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coherence/transport/net/admission.hpp"
#include "coherence/transport/net/connection.hpp"
#include "coherence/transport/net/links.hpp"
#include "coherence/transport/net/log_budget.hpp"

namespace coherence::net {

inline constexpr uint64_t kNever = ~uint64_t{0};

// What has a descriptor in the epoll set, and times at which it wants to act.
class Source {
 public:
  virtual ~Source() = default;
  virtual void ready(uint32_t events, uint64_t now) = 0;
  virtual void tick(uint64_t now) = 0;  // at due(), or later
  virtual uint64_t due() const noexcept = 0;
  // Done with; what epoll still says of it is nobody's.  It is freed at the end of the pass.
  bool dead = false;
};

class Wire;
class HalfOpen;
class Listener;

class LinkLoop {
 public:
  LinkLoop(const Links::Spec& spec, Credentials credentials, LinksUser& user);
  ~LinkLoop();
  LinkLoop(const LinkLoop&) = delete;

  Status open(Problem*);
  Status listen(const Endpoints&, Problem*);
  Result<Link*> dial(const Who&, const Endpoints&, Problem*);
  Status watch(int fd, Problem*);
  bool wait(int ms);
  void flush();
  uint64_t due() const noexcept;
  uint16_t port() const noexcept;
  int epoll() const noexcept { return epoll_.fd(); }

  // --- its sources'

  const Links::Spec& spec() const noexcept { return spec_; }
  const Credentials& credentials() const noexcept { return credentials_; }
  LinksUser& user() noexcept { return user_; }
  void renew(Credentials credentials) noexcept { credentials_ = std::move(credentials); }
  // `*current`: the events that it has in the set already; 0: it is not there yet.
  bool look_for(int fd, Source&, uint32_t events, uint32_t* current) noexcept;
  void forget(int fd) noexcept;
  [[gnu::format(printf, 2, 3)]] void log(const char* format, ...);
  // About a peer that has shown nothing: only so many in a time.
  void log_refused(const Endpoint&, const char* why, uint64_t now);

  // A connection was accepted; it has yet to say whose it is.
  void take_in(Socket, const Endpoint& from, uint64_t now);
  // Now it has.
  void greeted(std::unique_ptr<Connection>, const Hello&, uint64_t now);
  void refuse(Connection&, Refusal, const char* reason, uint64_t now);
  void over(Wire&);

 private:
  void make_room(uint64_t now);
  Wire* wire_of(const Link&) noexcept;
  bool tick(uint64_t now);
  void sweep();
  template <class Visit>
  void for_sources(Visit) const;

  const Links::Spec spec_;
  Credentials credentials_;
  LinksUser& user_;
  Socket epoll_;
  Admission admission_;
  LogBudget refusals_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<HalfOpen>> half_open_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::vector<std::unique_ptr<Source>> watched_;
  bool inside_ = false;  // wait()
};

}  // namespace coherence::net
