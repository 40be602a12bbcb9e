// Queue pairs for memory nodes and nodes of tests, on a machine that has RDMA devices: the guest of tests/rdma.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "coherence/transport/verbs/verbs_access.hpp"
#include "coherence/transport/verbs/verbs_path.hpp"
#include "tests/support/tcp_nodes.hpp"

namespace gcl_test {

namespace verbs = coherence::verbs;

// Addresses whose devices are to be used: a node's, and memory nodes'.
struct RdmaAddresses {
  std::string node, memory_node;
};
// None: the test is not told to use any (GCL_RDMA="10.77.0.1 10.77.0.2").
inline std::optional<RdmaAddresses> rdma_addresses() {
  const char* const told = getenv("GCL_RDMA");
  if (told == nullptr) return std::nullopt;
  RdmaAddresses addresses;
  std::istringstream in(told);
  if (!(in >> addresses.node >> addresses.memory_node)) fprintf(stderr, "GCL_RDMA: two addresses\n"), abort();
  return addresses;
}

inline std::unique_ptr<verbs::Device> device_at(const std::string& address, tcp::Log& log) {
  coherence::Problem problem;
  return must(verbs::Device::open({}, endpoints(address + ":0").at[0], log, &problem), problem);
}

// As ServedNode::Spec::access, WorkedPort::Spec::path.
inline std::function<std::unique_ptr<tcp::DirectAccess>(std::span<std::byte>, tcp::Log&)> access_at(
    const std::string& address) {
  return [address](std::span<std::byte> region, tcp::Log& log) -> std::unique_ptr<tcp::DirectAccess> {
    coherence::Problem problem;
    return must(verbs::VerbsAccess::make(device_at(address, log), region, log, &problem), problem);
  };
}
inline std::function<std::unique_ptr<tcp::DirectPath>(tcp::Log&)> path_at(const std::string& address,
                                                                          std::span<std::byte> frames = {}) {
  return [address, frames](tcp::Log& log) -> std::unique_ptr<tcp::DirectPath> {
    coherence::Problem problem;
    return must(verbs::VerbsPath::make(device_at(address, log), frames, &problem), problem);
  };
}

// A path whose memory node refuses what comes behind so many operations of each batch: between them is a WRITE behind
// the end of its region.
class RefusedPath final : public tcp::DirectPath {
 public:
  RefusedPath(std::unique_ptr<tcp::DirectPath> path, int after, uint64_t end)
      : path_(std::move(path)), after_(after), end_(end) {}
  coherence::Status ask(net::Link& link, coherence::Problem* problem) override { return path_->ask(link, problem); }
  coherence::Status answer(net::Link& link, std::span<const std::byte> payload, coherence::Problem* problem) override {
    return path_->answer(link, payload, problem);
  }
  bool is_open(MemoryNodeId id) const noexcept override { return path_->is_open(id); }
  bool post(MemoryNodeId id, tcp::PortEntry& entry) override {
    static std::byte nothing[8];
    if (entry.count >= coherence::kBatchOpsMax) abort();
    for (int i = entry.count; i > after_; i--) entry.op[i] = entry.op[i - 1];
    entry.count++;
    coherence::Batch bad(id);
    bad.write(coherence::PoolAddress::at(id, end_), nothing, sizeof nothing);
    entry.op[after_] = bad.op(0);
    return path_->post(id, entry);
  }
  void poll(tcp::PathUser& user) override { path_->poll(user); }
  bool keeps_awake() noexcept override { return path_->keeps_awake(); }
  int fd() const noexcept override { return path_->fd(); }
  void readable() noexcept override { path_->readable(); }
  void close(MemoryNodeId id) noexcept override { path_->close(id); }

 private:
  const std::unique_ptr<tcp::DirectPath> path_;
  const int after_;
  const uint64_t end_;
};

}  // namespace gcl_test
