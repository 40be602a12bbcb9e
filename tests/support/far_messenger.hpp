// FarMessenger: messages of different pairs of session and node overtake each other; those of one pair stay in order,
// as those of a queue pair do.  What the network has outlives its sender.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "coherence/transport/shm/shm_messenger.hpp"
#include "tests/support/far_memory.hpp"

namespace gcl_test {

class FarMessenger : public coherence::Messenger {
 public:
  FarMessenger(coherence::NodeParts& node, coherence::Counters& counters, std::shared_ptr<Network> network)
      : FarMessenger(node, std::make_shared<coherence::ShmMessenger>(node, counters), std::move(network)) {}
  // `near`: what a message meets when it has arrived.
  FarMessenger(coherence::NodeParts& node, std::shared_ptr<coherence::Messenger> near, std::shared_ptr<Network> network)
      : peers_(coherence::peers_of(node)), near_(std::move(near)), wire_(std::make_shared<Wire>(std::move(network))) {}
  void ask(coherence::NodeId to, uint16_t slot, coherence::PageId page) noexcept override {
    wire_->send(to, [near = near_, to, slot, page] { near->ask(to, slot, page); });
  }
  bool reach_all() noexcept override { return near_->reach_all(); }
  bool receive(coherence::RequestHandler& handler) noexcept override { return near_->receive(handler); }
  bool take_request(coherence::NodeId from, uint16_t slot, coherence::PeerRequest* request,
                    coherence::PageId* page) noexcept override {
    return near_->take_request(from, slot, request, page);
  }
  // The page is as it is now.
  uint32_t reply(const coherence::PeerRequest& request, const coherence::Reply& reply) noexcept override {
    const coherence::NodeId to{request.from};
    const auto there = peers_.at(to);
    if (!there || uint8_t((*there)->incarnation()) != request.incarnation) return kNowhere;
    const uint32_t line = (*there)->slot(request.slot)->line.load(std::memory_order_relaxed);
    std::vector<std::byte> bytes;
    if (carries_page(reply.kind)) {
      bytes.resize(coherence::kPageSize);
      memcpy(bytes.data(), reply.page, coherence::kPageSize);
    }
    wire_->send(to, [near = near_, request, reply, bytes = std::move(bytes)] {
      coherence::Reply late = reply;
      late.page = bytes.data();
      (void)near->reply(request, late);
    });
    return line;
  }
  void grant_complete(coherence::NodeId to, uint8_t incarnation, uint32_t line) noexcept override {
    wire_->send(to, [near = near_, to, incarnation, line] { near->grant_complete(to, incarnation, line); });
  }
  void flush() noexcept override {
    while (!wire_->empty()) wire_->network().wait();
  }

 protected:
  coherence::Peers& peers_;
  const std::shared_ptr<coherence::Messenger> near_;

 private:
  // What is on its way to each node, in order: the next sets out when the one before it has arrived.
  class Wire : public std::enable_shared_from_this<Wire> {
   public:
    explicit Wire(std::shared_ptr<Network> network) : network_(std::move(network)) {}
    void send(coherence::NodeId to, std::function<void()> arrival) {
      std::unique_lock hold(mutex_);
      to_[to.value].push_back(std::move(arrival));
      if (to_[to.value].size() > 1) return;
      hold.unlock();
      carry_next(to);
    }
    bool empty() {
      std::lock_guard hold(mutex_);
      for (const auto& messages : to_)
        if (!messages.empty()) return false;
      return true;
    }
    Network& network() { return *network_; }

   private:
    void carry_next(coherence::NodeId to) {
      network_->carry([self = shared_from_this(), to] {
        std::function<void()> arrival;
        {
          std::lock_guard hold(self->mutex_);
          arrival = std::move(self->to_[to.value].front());  // whose place stays until it has arrived
        }
        arrival();
        bool more;
        {
          std::lock_guard hold(self->mutex_);
          self->to_[to.value].pop_front();
          more = !self->to_[to.value].empty();
        }
        if (more) self->carry_next(to);
      });
    }
    const std::shared_ptr<Network> network_;
    std::mutex mutex_;
    std::array<std::deque<std::function<void()>>, coherence::kNodesMax> to_;
  };

  const std::shared_ptr<Wire> wire_;
};

}  // namespace gcl_test
