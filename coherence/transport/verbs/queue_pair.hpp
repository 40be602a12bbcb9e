// QueuePair: one reliable connection between a node and a memory node, and its completion queue.
//
// verbs.node-asks-alone: A memory node's end takes requests and sends none: it has no more rights than to answer.  A
//     node's end takes none, and none of the node's memory may be reached from outside.
// verbs.breaks-once: A queue pair whose operation has failed, for whatever reason, is never used again: nothing tells
//     which of the operations behind took place.  What it could not deliver it has tried for some two seconds, as long
//     as a node may be silent (tcp.lease).
//
// One thread.  Destroyed before its device.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/verbs/device.hpp"
#include "coherence/transport/verbs/path_frame.hpp"

namespace coherence::verbs {

// An operation that is not acknowledged is sent again after 4 us * 2^kTimeout = 0.27 s, and at most kRetries times:
// seven are without end for rxe.
inline constexpr uint8_t kTimeout = 16, kRetries = 6;
// A device may wait four times as long for each, says InfiniBand's specification: then it has given up.
inline constexpr uint64_t kGivesUpNsMax = (kRetries + 1) * 4 * (uint64_t{4'096} << kTimeout);

class QueuePair {
 public:
  enum class Of : uint8_t { kNode, kMemoryNode };
  // Of a node: for as many work requests, at most, as the device has room for; `context` is what its events are told
  // with.  kNoSpace: the device has no more.
  static Result<std::unique_ptr<QueuePair>> make(Device&, Of, void* context, Problem*);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;

  PathEnd end() const noexcept { return end_; }  // a memory node's key aside
  // From now on its operations travel, or are taken.  kIncompatible: the two ports do not fit each other; kSystem.
  Status connect(const PathEnd& other, Problem*);

  uint32_t number() const noexcept { return pair_->qp_num; }
  uint32_t requests_max() const noexcept { return requests_max_; }
  uint32_t inline_bytes() const noexcept { return inline_bytes_; }
  // 0, or an errno: some of them may have been taken.
  int post(ibv_send_wr* first) noexcept {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(pair_.get(), first, &bad);
  }
  // How many there are; below 0: the queue is broken.
  int poll(ibv_wc* to, int room) noexcept { return ibv_poll_cq(queue_.get(), room, to); }
  // The device's channel becomes readable when something is complete that is not yet.  0, or an errno.
  int arm() noexcept { return ibv_req_notify_cq(queue_.get(), 0); }

 private:
  explicit QueuePair(Device& device, Of of) noexcept : device_(device), of_(of) {}
  Status create(void* context, Problem*);
  Status initialise(Problem*);
  int receive(const PathEnd& other);
  int send(const PathEnd& other);

  Device& device_;
  const Of of_;
  CompletionQueue queue_;
  Pair pair_;  // gone first
  PathEnd end_;
  uint32_t requests_max_ = 0, inline_bytes_ = 0;
};

}  // namespace coherence::verbs
