#include "tools/gclctl/probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "coherence/base/ids.hpp"
#include "coherence/base/os.hpp"
#include "coherence/transport/net/links.hpp"

namespace gclctl {
namespace {

namespace net = coherence::net;
namespace tcp = coherence::tcp;
using coherence::Batch;
using coherence::PoolAddress;
using coherence::Problem;

constexpr int kReachMs = 3000, kGreetMs = 3000;
constexpr uint64_t kProbeNs = 5'000'000'000;
constexpr int kLoads = 25;          // batches; the median is one of them
constexpr uint64_t kLongPages = 8;  // 64 KB
constexpr auto kNow = coherence::monotonic_ns;

class Socket {
 public:
  explicit Socket(int family) : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// 0, or the system's error; ETIMEDOUT: nothing was heard.
int connected(const Socket& socket, const net::Endpoint& at) {
  if (connect(socket.get(), at.raw(), at.bytes) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd one{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  const uint64_t until = kNow() + uint64_t(kReachMs) * 1'000'000;
  int ready = 0;
  do {
    const uint64_t now = kNow();
    ready = now < until ? poll(&one, 1, int((until - now) / 1'000'000) + 1) : 0;
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  (void)getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error;
}

std::string in_words(int error) {
  switch (error) {
    case ECONNREFUSED:
      return "its machine answers, and nobody listens there: is it started?";
    case ETIMEDOUT:
      return fmt::format("nothing was heard for {} s: is the machine up, and do firewalls let this port pass?",
                         kReachMs / 1000);
    default:
      return fmt::format("{}: is there a route to it?", strerror(error));
  }
}

double us_since(uint64_t began) { return double(kNow() - began) / 1000; }

}  // namespace

std::optional<net::Endpoints> resolve(const std::string& address, std::string* why) {
  Problem problem;
  const auto parsed = net::Address::parse(address, &problem);
  if (parsed)
    if (const auto endpoints = parsed->resolve(&problem)) return *endpoints;
  *why = problem.text;
  return std::nullopt;
}

Reach reach(const net::Endpoints& at) {
  Reach result;
  for (int i = 0; i < at.count && !result.reached; i++) {
    const Socket socket(at.at[i].family());
    const uint64_t began = kNow();
    const int error = connected(socket, at.at[i]);
    result.name = at.at[i].name().text;
    result.reached = error == 0;
    result.refused |= error == ECONNREFUSED;
    result.why = error == 0 ? "" : in_words(error);
    result.connect_ms = us_since(began) / 1000;
    socklen_t bytes = sizeof result.mtu;
    const bool six = at.at[i].family() == AF_INET6;
    if (error != 0 || getsockopt(socket.get(), six ? int(IPPROTO_IPV6) : int(IPPROTO_IP), six ? IPV6_MTU : IP_MTU,
                                 &result.mtu, &bytes) != 0)
      result.mtu = 0;
  }
  return result;
}

bool is_of_this_machine(const net::Endpoint& at) {
  net::Endpoint any_port = at;
  any_port.set_port(0);
  const Socket socket(at.family());
  return bind(socket.get(), any_port.raw(), any_port.bytes) == 0 || errno != EADDRNOTAVAIL;
}

MemoryNodeProbe::MemoryNodeProbe(const std::string& address, const net::Endpoints& at, uint32_t number,
                                 uint64_t cluster, net::Credentials credentials)
    : number_{uint8_t(number)} {
  Problem problem;
  auto link = tcp::ToolLink::dial(
      {.name = address, .at = at, .to = number_, .cluster = cluster, .times = {.answer_ns = kProbeNs}},
      std::move(credentials), log_, &problem);
  if (link)
    link_ = link.take();
  else
    no_link_ = problem.text;
}

MemoryNodeProbe::~MemoryNodeProbe() = default;

bool MemoryNodeProbe::ask(std::string* why) {
  Problem problem;
  *why = no_link_;
  if (link_ == nullptr) return false;
  const bool said{link_->call({.call = tcp::Call::kHeader}, nullptr, &problem)};
  *why = problem.text;
  return said;
}

template <class Fill>
bool MemoryNodeProbe::run(const Fill& fill, double* us, std::string* why) {
  Problem problem;
  *why = no_link_;
  if (link_ == nullptr) return false;
  Batch batch(number_);
  fill(batch);
  const uint64_t began = kNow();
  const bool done{link_->run(batch, &problem)};
  *us = us_since(began);
  *why = problem.text;
  return done;
}

bool MemoryNodeProbe::answers_what_is_short(std::string* why) {
  double us = 0;
  return run([&](Batch& batch) { batch.load(PoolAddress::at(number_, 0)); }, &us, why);
}

bool MemoryNodeProbe::measure_loads(const Places& places, double* median_us, std::string* why) {
  std::vector<double> all;
  for (int i = 0; i <= kLoads; i++) {
    double us = 0;
    if (!run([&](Batch& batch) { batch.load(PoolAddress::at(number_, places.words_at)); }, &us, why)) return false;
    if (i > 0) all.push_back(us);  // the first one has made the connection
  }
  std::nth_element(all.begin(), all.begin() + kLoads / 2, all.end());
  *median_us = all[kLoads / 2];
  return true;
}

bool MemoryNodeProbe::try_atomic(const Places& places, double* us, std::string* why) {
  return run([&](Batch& batch) { batch.faa(PoolAddress::at(number_, places.words_at), 0); }, us, why);
}

bool MemoryNodeProbe::try_long(const Places& places, std::string* why) {
  double us = 0;
  std::vector<std::byte> pages(kLongPages * coherence::kPageSize);
  if (!run(
          [&](Batch& batch) {
            while (!batch.full()) batch.load(PoolAddress::at(number_, places.words_at));
          },
          &us, why))
    return false;
  return run(
      [&](Batch& batch) {
        const uint64_t count = std::min(kLongPages, places.pages);
        batch.read(PoolAddress::at(number_, places.pages_at), pages.data(), uint32_t(count * coherence::kPageSize));
      },
      &us, why);
}

namespace {

class Greeting final : public net::LinksUser {
 public:
  bool known() const { return known_; }
  bool over() const { return over_; }
  const std::string& why() const { return why_; }

 private:
  void frame(net::Link&, uint16_t, std::span<const std::byte>) override {}
  void begun(net::Link&) override { known_ = true; }
  void over(net::Link& link) override {
    over_ = true;
    why_ = link.reason();
  }
  void log(const char*) override {}
  bool known_ = false, over_ = false;
  std::string why_;
};

}  // namespace

std::string greet_primary(const net::Endpoints& at, uint8_t number, uint64_t cluster, net::Credentials credentials) {
  Greeting greeting;
  Problem problem;
  auto links = net::Links::make({.self = net::Who::tool(kNow()), .cluster = cluster}, std::move(credentials), greeting,
                                &problem);
  if (!links) return problem.text;
  const auto link = (*links)->dial(net::Who::node({number}, 0), at, &problem);
  if (!link) return problem.text;
  for (const uint64_t until = kNow() + uint64_t(kGreetMs) * 1'000'000; !greeting.known() && !greeting.over();) {
    if (kNow() > until) return fmt::format("it does not greet within {} s: {}", kGreetMs / 1000, (*link)->reason());
    (*links)->wait(50);
  }
  return greeting.known() ? "" : greeting.why();
}

}  // namespace gclctl
