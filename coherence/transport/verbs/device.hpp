// Device: a process's one context of an RDMA device: port, GID, protection domain, and what of it becomes readable.
//
// verbs.one-context-after-fork: A process opens its device itself, and forks nothing afterwards: contexts, queue pairs
//     and registrations are no child's.
// verbs.atomics-of-one-device: What is atomic on a word is so among the operations of one device (IBV_ATOMIC_HCA).  So
//     a memory node is reached by one device, and its own processor touches words only while no node does
//     (tcp.one-data-path).
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/verbs/device_choice.hpp"
#include "coherence/transport/verbs/handles.hpp"

namespace coherence::verbs {

// What of a device is of no use any more when it says so.
enum class Lost : uint8_t { kNothing, kPair, kQueue, kAll };
Lost lost_by(ibv_event_type) noexcept;

class Device {
 public:
  // As `settings` say; `near`: where this process is reached.  kNotFound: there is none (choose_gid()); kIncompatible:
  // it has no atomics; kSystem.  `log` outlives it.
  static Result<std::unique_ptr<Device>> open(const DeviceSettings& settings, const net::Endpoint& near, tcp::Log& log,
                                              Problem*);
  ~Device();
  Device(const Device&) = delete;

  ibv_context* context() const noexcept { return context_.get(); }
  ibv_pd* domain() const noexcept { return domain_.get(); }
  ibv_comp_channel* channel() const noexcept { return channel_.get(); }
  const PortGid& at() const noexcept { return at_; }
  uint16_t lid() const noexcept { return lid_; }
  ibv_mtu mtu() const noexcept { return mtu_; }
  const ibv_device_attr& limits() const noexcept { return limits_; }
  // "rxe0, port 1, GID 1 (10.0.0.2), MTU 1024".
  const char* name() const noexcept { return name_.text; }

  // `access`: IBV_ACCESS_*; by the network the bytes are named from 0 on.  kNoMemory: the system lets no more memory be
  // locked.
  Result<MemoryRegion> reg(void* at, uint64_t bytes, int access, const char* what, Problem*);

  // Readable when a completion queue says that something is complete, or the device has something to say.
  int fd() const noexcept { return epoll_; }
  // Takes all of it: calls completed(context of the completion queue); failed(context of the queue pair, or of the
  // completion queue) for one that the device gives up, failed(null) when it has failed as a whole.  The rest is
  // logged.
  void take_events(const std::function<void(void*)>& completed, const std::function<void(void*)>& failed);

 private:
  explicit Device(tcp::Log& log) : log_(log) {}
  Status find(const DeviceSettings&, const net::Endpoint& near, Problem*);
  Status look(Problem*);
  Status watch(Problem*);

  tcp::Log& log_;
  int epoll_ = -1;
  Context context_;
  ProtectionDomain domain_;
  CompletionChannel channel_;
  PortGid at_;
  uint16_t lid_ = 0;
  ibv_mtu mtu_ = IBV_MTU_1024;
  ibv_device_attr limits_ = {};
  Problem name_;
};

}  // namespace coherence::verbs
