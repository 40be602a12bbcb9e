// NearNode: a node as it is to what arrives there.  Its own processes know of the others what their Mirror says; what
// arrives meets who is really in the pool, as it would in the memory of a peer that it reaches.
#pragma once

#include "coherence/member/node_parts.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_membership.hpp"
#include "coherence/transport/shm/shm_wakeup.hpp"

namespace sim {

class NearNode {
 public:
  explicit NearNode(coherence::NodeParts& node)
      : node_(&node), members_(coherence::MappedPool::of(node.pool)), parts_(node.pool), wakeup_(parts_) {
    parts_.members = &members_;
    parts_.wakeup = &wakeup_;
    parts_.sessions_here = 2;  // no mapping is given back in the middle of an arrival
  }
  NearNode(const NearNode&) = delete;
  // Null: its process has ended, or will not join after all.  What others have of it stays.
  coherence::NodeParts* node() { return node_; }
  void end() {
    (void)parts();
    node_ = nullptr;
  }
  coherence::NodeParts& parts() {
    if (node_ == nullptr) return parts_;
    parts_.id = node_->id;
    parts_.incarnation = node_->incarnation;
    parts_.fence = node_->fence;
    parts_.arena = node_->arena;
    parts_.hot = node_->hot;
    return parts_;
  }
  coherence::ShmWakeup& wakeup() { return wakeup_; }

 private:
  coherence::NodeParts* node_;
  coherence::ShmMembership members_;  // looks only
  coherence::NodeParts parts_;
  coherence::ShmWakeup wakeup_;
};

}  // namespace sim
