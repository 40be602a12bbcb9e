#include "coherence/transport/verbs/queue_pair.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace coherence::verbs {
namespace {

constexpr uint32_t kRequestsMax = 1024;  // work requests under way
constexpr uint32_t kInlineBytes = 64;
constexpr uint8_t kHopLimit = 64;

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::make(Device& device, Of of, void* context, Problem* problem) {
  std::unique_ptr<QueuePair> pair(new QueuePair(device, of));
  GCL_TRY(pair->create(context, problem));
  GCL_TRY(pair->initialise(problem));
  return pair;
}

// What waits at this end, and was not begun, is dropped first.
QueuePair::~QueuePair() {
  if (pair_ == nullptr) return;
  ibv_qp_attr error = {};
  error.qp_state = IBV_QPS_ERR;
  (void)ibv_modify_qp(pair_.get(), &error, IBV_QP_STATE);
}

Status QueuePair::create(void* context, Problem* problem) {
  const ibv_device_attr& limits = device_.limits();
  const bool node = of_ == Of::kNode;
  const uint32_t requests = node ? std::min(kRequestsMax, uint32_t(limits.max_qp_wr)) : 1;
  // Each of them may have a completion, when they fail.
  const uint32_t completions = std::min(requests + 1, uint32_t(limits.max_cqe));
  queue_.reset(ibv_create_cq(device_.context(), int(completions), context, node ? device_.channel() : nullptr, 0));
  if (queue_ == nullptr)
    return problem->set(Errc::kNoSpace, "no completion queue of %s: %s", device_.name(), strerror(errno));
  ibv_qp_init_attr wanted = {};
  wanted.qp_context = context;
  wanted.send_cq = wanted.recv_cq = queue_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = std::min(requests, completions - 1);
  wanted.cap.max_recv_wr = 1;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = node ? kInlineBytes : 0;
  pair_.reset(ibv_create_qp(device_.domain(), &wanted));
  if (pair_ == nullptr) return problem->set(Errc::kNoSpace, "no queue pair of %s: %s", device_.name(), strerror(errno));
  requests_max_ = std::min(wanted.cap.max_send_wr, completions - 1);
  inline_bytes_ = wanted.cap.max_inline_data;
  return {};
}

Status QueuePair::initialise(Problem* problem) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device_.at().port;
  // verbs.node-asks-alone
  if (of_ == Of::kMemoryNode)
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  const int done =
      ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (done != 0)
    return problem->set(Errc::kSystem, "a queue pair of %s does not begin: %s", device_.name(), strerror(done));
  uint32_t first = 0;
  if (getrandom(&first, sizeof first, 0) != ssize_t(sizeof first))
    return problem->set(Errc::kSystem, "no random number: %s", strerror(errno));
  const ibv_device_attr& limits = device_.limits();
  const int reads = of_ == Of::kNode ? limits.max_qp_init_rd_atom : limits.max_qp_rd_atom;
  end_.number = number();
  end_.first = first & 0xffffff;
  end_.lid = device_.lid();
  end_.mtu = uint8_t(device_.mtu());
  end_.reads = uint8_t(std::clamp(reads, 1, 255));
  end_.infiniband = device_.at().infiniband ? 1 : 0;
  memcpy(end_.gid, device_.at().gid, sizeof end_.gid);
  return {};
}

int QueuePair::receive(const PathEnd& other) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = ibv_mtu(std::min(end_.mtu, other.mtu));
  attributes.dest_qp_num = other.number;
  attributes.rq_psn = other.first;
  attributes.max_dest_rd_atomic = of_ == Of::kMemoryNode ? std::min(end_.reads, other.reads) : uint8_t{0};
  attributes.min_rnr_timer = 12;  // of no use: nothing is received by a receive request
  ibv_ah_attr& way = attributes.ah_attr;
  way.dlid = other.lid;
  way.port_num = device_.at().port;
  if (!device_.at().infiniband || memcmp(other.gid, end_.gid, 8) != 0) {  // over InfiniBand: of another subnet
    way.is_global = 1;
    memcpy(way.grh.dgid.raw, other.gid, sizeof other.gid);
    way.grh.sgid_index = uint8_t(device_.at().index);
    way.grh.hop_limit = kHopLimit;
  }
  return ibv_modify_qp(pair_.get(), &attributes,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int QueuePair::send(const PathEnd& other) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = end_.first;
  attributes.timeout = kTimeout;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kRetries;
  attributes.max_rd_atomic = std::min(end_.reads, other.reads);
  return ibv_modify_qp(
      pair_.get(), &attributes,
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

// A memory node's end stays where it answers.
Status QueuePair::connect(const PathEnd& other, Problem* problem) {
  if (other.infiniband != end_.infiniband)
    return problem->set(Errc::kIncompatible, "one end of a queue pair is of InfiniBand, the other of RoCE: %s, and %s",
                        device_.name(), GidText(other.gid).text);
  int done = receive(other);
  if (done == 0 && of_ == Of::kNode) done = send(other);
  if (done == 0) return {};
  return problem->set(Errc::kSystem, "%s has no way to the queue pair at %s: %s", device_.name(),
                      GidText(other.gid).text, strerror(done));
}

}  // namespace coherence::verbs
