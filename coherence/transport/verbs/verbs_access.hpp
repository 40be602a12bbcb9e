// VerbsAccess: a memory node's side of queue pairs: it makes one for a node that asks on its link, and then has no part
// in what goes by it.
//
// verbs.no-pair-no-access: The region's key opens it to no node but one that has a queue pair here, and only a node
//     that has an open link has a queue pair.  So the key need not be changed when a node dies: its queue pair
//     is destroyed before its link counts as over (tcp.path-of-link), and what is on its way to it is dropped
//     (verbs.gone-for-certain).
//
// One thread, the MemoryServer's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/memory/direct_path.hpp"
#include "coherence/transport/verbs/device.hpp"
#include "coherence/transport/verbs/queue_pair.hpp"

namespace coherence::verbs {

class VerbsAccess final : public tcp::DirectAccess {
 public:
  // The region and the log outlive it.  kNoMemory: the system lets no more memory be locked.
  static Result<std::unique_ptr<VerbsAccess>> make(std::unique_ptr<Device>, std::span<std::byte> region, tcp::Log& log,
                                                   Problem*);
  ~VerbsAccess() override;

  Status open(net::Link&, std::span<const std::byte> payload, Problem*) override;
  void close(const net::Link&) noexcept override;
  size_t paths() const noexcept override { return open_.size(); }
  void after_pass() override;
  int fd() const noexcept override { return device_->fd(); }
  const Device& device() const noexcept { return *device_; }

 private:
  struct Open {
    const net::Link* link;
    std::unique_ptr<QueuePair> pair;
  };
  VerbsAccess(std::unique_ptr<Device> device, tcp::Log& log) : device_(std::move(device)), log_(log) {}

  const std::unique_ptr<Device> device_;
  tcp::Log& log_;
  MemoryRegion region_;
  std::vector<Open> open_;
};

}  // namespace coherence::verbs
