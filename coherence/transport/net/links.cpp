#include "coherence/transport/net/links.hpp"

#include <algorithm>
#include <utility>

#include "coherence/base/os.hpp"
#include "coherence/transport/net/link_loop.hpp"

namespace coherence::net {

Links::Links(std::unique_ptr<LinkLoop> loop) noexcept : loop_(std::move(loop)) {}
Links::~Links() = default;

Result<std::unique_ptr<Links>> Links::make(const Spec& spec, Credentials credentials, LinksUser& user,
                                           Problem* problem) {
  auto loop = std::make_unique<LinkLoop>(spec, std::move(credentials), user);
  GCL_TRY(loop->open(problem));
  return std::unique_ptr<Links>(new Links(std::move(loop)));
}

Status Links::listen(const Endpoints& endpoints, Problem* problem) { return loop_->listen(endpoints, problem); }
uint16_t Links::port() const noexcept { return loop_->port(); }

Result<Link*> Links::dial(const Who& peer, const Endpoints& endpoints, Problem* problem) {
  return loop_->dial(peer, endpoints, problem);
}

void Links::renew(Credentials credentials) noexcept { loop_->renew(std::move(credentials)); }
bool Links::wait(int ms) { return loop_->wait(ms); }
void Links::flush() { loop_->flush(); }
Status Links::watch(int fd, Problem* problem) { return loop_->watch(fd, problem); }
int Links::fd() const noexcept { return loop_->epoll(); }

int Links::wait_ms() const noexcept {
  const uint64_t at = loop_->due(), now = monotonic_ns();
  if (at == kNever) return -1;
  return at <= now ? 0 : int(std::min<uint64_t>((at - now + 999'999) / 1'000'000, 1'000'000));
}

}  // namespace coherence::net
