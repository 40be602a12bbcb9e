#include "coherence/transport/net/link_loop.hpp"

#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/transport/net/half_open.hpp"
#include "coherence/transport/net/listener.hpp"
#include "coherence/transport/net/wire.hpp"

namespace coherence::net {
namespace {

// A descriptor that the user watches.
class Watched final : public Source {
 public:
  Watched(LinksUser& user, int fd) noexcept : user_(user), fd_(fd) {}
  void ready(uint32_t, uint64_t) override { user_.ready(fd_); }
  void tick(uint64_t) override {}
  uint64_t due() const noexcept override { return kNever; }
  int fd() const noexcept { return fd_; }

 private:
  LinksUser& user_;
  const int fd_;
};

}  // namespace

LinkLoop::LinkLoop(const Links::Spec& spec, Credentials credentials, LinksUser& user)
    : spec_(spec),
      credentials_(std::move(credentials)),
      user_(user),
      admission_(spec.self, spec.cluster, spec.links_max, spec.again) {
  VERIFY(spec.self.start != 0 && SendWindow::fits(spec.window) && spec.half_open_max > 0);
}

LinkLoop::~LinkLoop() = default;

Status LinkLoop::open(Problem* problem) {
  epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  return epoll_.open() ? Status() : problem->set(Errc::kSystem, "cannot make an epoll set: %s", strerror(errno));
}

// --- what it has

Status LinkLoop::listen(const Endpoints& endpoints, Problem* problem) {
  for (int i = 0; i < endpoints.count; i++) {
    const Endpoint& at = endpoints.at[i];
    GCL_TRY(credentials_.fit(at.local(), at.name().text, problem));
    Result<Socket> socket = Socket::listening(at, problem);
    if (!socket) return socket.error();
    auto listener = std::make_unique<Listener>(*this, socket.take());
    if (!listener->listen()) return problem->set(Errc::kSystem, "cannot watch a socket: %s", strerror(errno));
    listeners_.push_back(std::move(listener));
  }
  return {};
}

uint16_t LinkLoop::port() const noexcept {
  for (const auto& listener : listeners_)
    if (const uint16_t port = listener->port(); port != 0) return port;
  return 0;
}

Result<Link*> LinkLoop::dial(const Who& peer, const Endpoints& endpoints, Problem* problem) {
  VERIFY(endpoints.count > 0);
  for (int i = 0; i < endpoints.count; i++)
    GCL_TRY(credentials_.fit(endpoints.at[i].local(), endpoints.at[i].name().text, problem));
  Link::Spec spec{spec_.self, peer, spec_.cluster, 0, spec_.window, spec_.times};
  if (getrandom(&spec.id, sizeof spec.id, 0) != ssize_t(sizeof spec.id))
    return problem->set(Errc::kSystem, "no random number: %s", strerror(errno));
  std::unique_ptr<Link> link = Link::dialing(spec, monotonic_ns());
  if (!link) return problem->set(Errc::kNoMemory, "no memory for a link with a window of %u bytes", spec.window);
  wires_.push_back(std::make_unique<Wire>(*this, std::move(link), &endpoints));
  return &wires_.back()->link();
}

Status LinkLoop::watch(int fd, Problem* problem) {
  auto watched = std::make_unique<Watched>(user_, fd);
  uint32_t events = 0;
  if (!look_for(fd, *watched, EPOLLIN, &events))
    return problem->set(Errc::kSystem, "cannot watch a descriptor: %s", strerror(errno));
  watched_.push_back(std::move(watched));
  return {};
}

// --- the loop

template <class Visit>
void LinkLoop::for_sources(Visit visit) const {
  for (size_t i = 0; i < listeners_.size(); i++) visit(*listeners_[i]);
  for (size_t i = 0; i < half_open_.size(); i++) visit(*half_open_[i]);
  for (size_t i = 0; i < wires_.size(); i++) visit(*wires_[i]);
}

uint64_t LinkLoop::due() const noexcept {
  uint64_t at = kNever;
  for_sources([&](const Source& source) { at = std::min(at, source.due()); });
  return at;
}

bool LinkLoop::tick(uint64_t now) {
  bool any = false;
  for_sources([&](Source& source) {
    if (source.due() > now) return;
    source.tick(now);
    any = true;
  });
  return any;
}

void LinkLoop::flush() {
  const uint64_t now = monotonic_ns();
  for (size_t i = 0; i < wires_.size(); i++)
    if (wires_[i]->link().has_output()) wires_[i]->flush(now);
}

void LinkLoop::sweep() {
  std::erase_if(half_open_, [](const auto& source) { return source->dead; });
  std::erase_if(wires_, [](const auto& source) { return source->dead; });
}

bool LinkLoop::wait(int ms) {
  VERIFY(!inside_);
  inside_ = true;
  flush();
  const uint64_t at = due(), before = monotonic_ns();
  if (at <= before) {
    ms = 0;
  } else if (at != kNever) {
    const uint64_t left = (at - before + 999'999) / 1'000'000;
    if (ms < 0 || left < uint64_t(ms)) ms = int(std::min<uint64_t>(left, 1'000'000));
  }
  epoll_event events[64];
  const int count = epoll_wait(epoll_.fd(), events, 64, ms);
  const uint64_t now = monotonic_ns();
  for (int i = 0; i < count; i++) {
    Source& source = *static_cast<Source*>(events[i].data.ptr);
    if (!source.dead) source.ready(events[i].events, now);
  }
  const bool ticked = tick(now);
  flush();
  sweep();
  inside_ = false;
  return count > 0 || ticked;
}

bool LinkLoop::look_for(int fd, Source& source, uint32_t events, uint32_t* current) noexcept {
  if (events == *current) return true;
  epoll_event event = {};
  event.events = events;
  event.data.ptr = &source;
  if (epoll_ctl(epoll_.fd(), *current == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) != 0) return false;
  *current = events;
  return true;
}

void LinkLoop::forget(int fd) noexcept { epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr); }

void LinkLoop::log(const char* format, ...) {
  Problem line;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line.text, sizeof line.text, format, arguments);
  va_end(arguments);
  user_.log(line.text);
}

void LinkLoop::log_refused(const Endpoint& who, const char* why, uint64_t now) {
  uint64_t left_out = 0;
  if (!refusals_.take(now, &left_out)) return;
  if (left_out == 0) return log("%s is refused: %s", who.name().text, why);
  log("%s is refused: %s (and %llu others before it)", who.name().text, why, static_cast<unsigned long long>(left_out));
}

// --- peers that connect

void LinkLoop::take_in(Socket socket, const Endpoint& from, uint64_t now) {
  make_room(now);
  Problem problem;
  auto connection = Connection::accepted(std::move(socket), from, credentials_, &problem);
  if (!connection) return log_refused(from, problem.text, now);
  half_open_.push_back(std::make_unique<HalfOpen>(*this, connection.take(), now));
  half_open_.back()->ready(0, now);
}

// net.half-open-bounded
void LinkLoop::make_room(uint64_t now) {
  int alive = 0, most = 0;
  HalfOpen* oldest = nullptr;
  for (const auto& each : half_open_) {
    if (each->dead) continue;
    alive++;
    int of_host = 0;
    HalfOpen* first = nullptr;  // they are in the order in which they came
    for (const auto& other : half_open_)
      if (!other->dead && other->peer().same_host(each->peer())) {
        if (!first) first = other.get();
        of_host++;
      }
    if (of_host > most) most = of_host, oldest = first;
  }
  if (oldest && alive >= spec_.half_open_max) oldest->give_up("too many connect and do not say who they are", now);
}

Wire* LinkLoop::wire_of(const Link& link) noexcept {
  for (const auto& wire : wires_)
    if (&wire->link() == &link) return wire.get();
  return nullptr;
}

void LinkLoop::greeted(std::unique_ptr<Connection> connection, const Hello& hello, uint64_t now) {
  const Admission::Decision decision = admission_.judge(hello);
  if (decision.refusal != Refusal::kNone) {
    refuse(*connection, decision.refusal, decision.reason, now);
    Problem why;
    why.write("%s: %s", hello.from.name().text, decision.reason);
    return log_refused(connection->peer(), why.text, now);
  }
  if (decision.replaced) {
    Wire* const old = wire_of(*decision.replaced);
    old->link().replace("a newer start of it has connected");
    old->flush_or_disconnect(now);
  }
  Wire* wire = decision.link ? wire_of(*decision.link) : nullptr;
  if (!wire) {
    LinkTimes times = spec_.times;
    if (hello.from.role == Role::kTool) times.silence_ns = std::max(times.silence_ns, spec_.tool_silence_ns);
    std::unique_ptr<Link> link =
        Link::accepting({spec_.self, hello.from, spec_.cluster, hello.link, spec_.window, times}, now);
    if (!link) return refuse(*connection, Refusal::kFull, "no memory for a link", now);
    admission_.begun(*link);
    wires_.push_back(std::make_unique<Wire>(*this, std::move(link), nullptr));
    wire = wires_.back().get();
  }
  wire->take(std::move(connection), hello, now);
}

// As far as the socket takes it at once.  What is left to read would have the system throw the refusal away.
void LinkLoop::refuse(Connection& connection, Refusal refusal, const char* reason, uint64_t) {
  Welcome welcome{refusal, spec_.self};
  snprintf(welcome.reason, sizeof welcome.reason, "%.103s", reason);
  std::byte bytes[kWelcomeBytes];
  write_welcome(welcome, bytes);
  const iovec piece{bytes, sizeof bytes};
  Problem unheard;
  (void)connection.write(&piece, 1, &unheard);
  std::byte left[1024];
  for (int i = 0; i < 4; i++)
    if (!connection.read(left, &unheard)) break;
}

void LinkLoop::over(Wire& wire) {
  log("the link with %s is over: %s", wire.link().peer().name().text, wire.link().reason());
  wire.dead = true;
  admission_.over(wire.link());
  user_.over(wire.link());
}

}  // namespace coherence::net
