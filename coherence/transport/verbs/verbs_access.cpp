#include "coherence/transport/verbs/verbs_access.hpp"

#include <algorithm>
#include <utility>

#include "coherence/base/text.hpp"

namespace coherence::verbs {

Result<std::unique_ptr<VerbsAccess>> VerbsAccess::make(std::unique_ptr<Device> device, std::span<std::byte> region,
                                                       tcp::Log& log, Problem* problem) {
  std::unique_ptr<VerbsAccess> access(new VerbsAccess(std::move(device), log));
  constexpr int kAll =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  auto registered = access->device_->reg(region.data(), region.size(), kAll, "the region of this memory node", problem);
  if (!registered) return registered.error();
  access->region_ = registered.take();
  return access;
}

VerbsAccess::~VerbsAccess() = default;

Status VerbsAccess::open(net::Link& link, std::span<const std::byte> payload, Problem* problem) {
  PathEnd other;
  GCL_TRY(decode_path_end(payload, &other, problem));
  for (const Open& one : open_)
    if (one.link == &link) return problem->set(Errc::kCorrupt, "that it wants a second queue pair");
  auto pair = QueuePair::make(*device_, QueuePair::Of::kMemoryNode, nullptr, problem);
  if (!pair) return pair.error();
  GCL_TRY((*pair)->connect(other, problem));
  PathEnd mine = (*pair)->end();
  mine.key = region_->rkey;
  open_.push_back({&link, pair.take()});
  if (!link.send(tcp::kPathFrame, bytes_of(mine)))
    return problem->set(Errc::kSystem, "that it wants a queue pair, and takes no answer");
  Text text;
  log_.line(text.add("%s has queue pair %u, by %s from %s", link.peer().name().text, mine.number, device_->name(),
                     GidText(other.gid).text)
                .c_str());
  return {};
}

void VerbsAccess::close(const net::Link& link) noexcept {
  std::erase_if(open_, [&](const Open& one) { return one.link == &link; });
}

void VerbsAccess::after_pass() {
  device_->take_events([](void*) {}, [](void*) {});
}

}  // namespace coherence::verbs
