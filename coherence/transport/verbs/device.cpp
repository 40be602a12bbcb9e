#include "coherence/transport/verbs/device.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "coherence/base/text.hpp"

namespace coherence::verbs {
namespace {

constexpr size_t kGidsMax = 1024;  // of a device

class DeviceList {
 public:
  DeviceList() : list_(ibv_get_device_list(&count_)) {}
  ~DeviceList() {
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  int count() const { return list_ == nullptr ? 0 : count_; }
  ibv_device* operator[](int i) const { return list_[i]; }

 private:
  int count_ = 0;
  ibv_device** const list_;
};

// Appends what its ports have.
void add_gids(ibv_context* context, std::vector<PortGid>* all) {
  ibv_device_attr device;
  if (ibv_query_device(context, &device) != 0) return;
  std::vector<ibv_gid_entry> entries(kGidsMax);
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  for (ssize_t i = 0; i < count; i++) {
    const ibv_gid_entry& entry = entries[size_t(i)];
    ibv_port_attr port;
    if (entry.port_num > 255 || ibv_query_port(context, uint8_t(entry.port_num), &port) != 0) continue;
    PortGid& one = all->emplace_back();
    one.device = ibv_get_device_name(context->device);
    one.port = uint8_t(entry.port_num);
    one.active = port.state == IBV_PORT_ACTIVE;
    one.infiniband = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
    one.v2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    one.index = int(entry.gid_index);
    memcpy(one.gid, entry.gid.raw, sizeof one.gid);
  }
}

bool do_not_wait(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

Lost lost_by(ibv_event_type type) noexcept {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return Lost::kPair;
    case IBV_EVENT_CQ_ERR:
      return Lost::kQueue;
    case IBV_EVENT_DEVICE_FATAL:
      return Lost::kAll;
    default:
      return Lost::kNothing;
  }
}

Result<std::unique_ptr<Device>> Device::open(const DeviceSettings& settings, const net::Endpoint& near, tcp::Log& log,
                                             Problem* problem) {
  std::unique_ptr<Device> device(new Device(log));
  GCL_TRY(device->find(settings, near, problem));
  GCL_TRY(device->look(problem));
  GCL_TRY(device->watch(problem));
  return device;
}

Device::~Device() {
  if (epoll_ >= 0) close(epoll_);
}

Status Device::find(const DeviceSettings& settings, const net::Endpoint& near, Problem* problem) {
  const DeviceList list;
  std::vector<PortGid> all;
  std::vector<Context> contexts;
  for (int i = 0; i < list.count(); i++) {
    Context context(ibv_open_device(list[i]));
    if (context == nullptr) continue;  // not this process's
    add_gids(context.get(), &all);
    contexts.push_back(std::move(context));
  }
  const auto chosen = choose_gid(all, settings, near, problem);
  if (!chosen) return chosen.error();
  at_ = all[*chosen];
  for (Context& context : contexts)
    if (at_.device == ibv_get_device_name(context->device)) context_ = std::move(context);
  return {};
}

Status Device::look(Problem* problem) {
  ibv_port_attr port;
  if (ibv_query_device(context_.get(), &limits_) != 0 || ibv_query_port(context_.get(), at_.port, &port) != 0)
    return problem->set(Errc::kSystem, "%s does not say what it can: %s", at_.device.c_str(), strerror(errno));
  if (limits_.atomic_cap == IBV_ATOMIC_NONE)
    return problem->set(Errc::kIncompatible, "%s has no atomic operations", at_.device.c_str());
  lid_ = port.lid;
  mtu_ = port.active_mtu;
  name_.write("%s, port %u, GID %d (%s), MTU %u", at_.device.c_str(), unsigned{at_.port}, at_.index,
              GidText(at_.gid).text, 128u << mtu_);
  domain_.reset(ibv_alloc_pd(context_.get()));
  if (domain_ == nullptr) return problem->set(Errc::kSystem, "no protection domain of %s: %s", name(), strerror(errno));
  return {};
}

Status Device::watch(Problem* problem) {
  channel_.reset(ibv_create_comp_channel(context_.get()));
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (channel_ == nullptr || epoll_ < 0)
    return problem->set(Errc::kSystem, "no completion channel of %s: %s", name(), strerror(errno));
  for (const int fd : {channel_->fd, context_->async_fd}) {
    epoll_event event = {};
    event.events = EPOLLIN;
    if (!do_not_wait(fd) || epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0)
      return problem->set(Errc::kSystem, "cannot watch %s: %s", name(), strerror(errno));
  }
  return {};
}

Result<MemoryRegion> Device::reg(void* at, uint64_t bytes, int access, const char* what, Problem* problem) {
  MemoryRegion region(
      ibv_reg_mr_iova(domain_.get(), at, bytes, access == IBV_ACCESS_LOCAL_WRITE ? uint64_t(at) : 0, unsigned(access)));
  if (region != nullptr) return region;
  const int why = errno;
  if (why != ENOMEM && why != EPERM)
    return problem->set(Errc::kSystem, "cannot register %s, %.0f MB, with %s: %s", what, double(bytes) / 1048576,
                        name(), strerror(why));
  return problem->set(Errc::kNoMemory,
                      "cannot register %s, %.0f MB, with %s: %s: how much memory a process may lock is limited "
                      "(ulimit -l, LimitMEMLOCK of systemd)",
                      what, double(bytes) / 1048576, name(), strerror(why));
}

void Device::take_events(const std::function<void(void*)>& completed, const std::function<void(void*)>& failed) {
  ibv_cq* queue;
  void* context;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) {
    ibv_ack_cq_events(queue, 1);
    completed(context);
  }
  ibv_async_event event;
  while (ibv_get_async_event(context_.get(), &event) == 0) {
    Text text;
    text.add("%s says: %s", name(), ibv_event_type_str(event.event_type));
    const Lost lost = lost_by(event.event_type);
    void* of = nullptr;
    if (lost == Lost::kPair) of = event.element.qp->qp_context;
    if (lost == Lost::kQueue) of = event.element.cq->cq_context;
    if (lost == Lost::kPair) text.add(", queue pair %u", event.element.qp->qp_num);
    ibv_ack_async_event(&event);
    if (event.event_type != IBV_EVENT_COMM_EST) log_.line(text.c_str());  // a queue pair's first request
    if (lost != Lost::kNothing) failed(of);
  }
}

}  // namespace coherence::verbs
