// FarMember: what a node has, in place of sockets, of the transport over networks: its network worker and its tool
// (NodeWorker, Calls), over Ways.  Its Membership is the product's: TcpMembership with a Mirror and Sayings of this
// incarnation's own, so it hears of the others late, and late of different things at different nodes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "coherence/member/membership.hpp"
#include "coherence/transport/tcp/base/worker_signal.hpp"
#include "coherence/transport/tcp/member/calls.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"
#include "coherence/transport/tcp/member/node_worker.hpp"
#include "coherence/transport/tcp/member/sayings.hpp"
#include "member_authority.hpp"
#include "ways.hpp"

namespace sim {

class FarMember final : public coherence::tcp::Calls,
                        public coherence::tcp::NodeWorker,
                        public coherence::tcp::WorkerSignal,
                        public NodeEnd,
                        public std::enable_shared_from_this<FarMember> {
 public:
  // `ring`: rings the node's message worker.  All outlive it.
  FarMember(MemberAuthority& authority, Ways& ways, std::function<void(const FarMember&)> ring)
      : authority_(authority), ways_(ways), ring_(std::move(ring)) {}
  std::unique_ptr<coherence::Membership> open(coherence::Pool&);
  const coherence::Membership* membership() const { return membership_; }

  // --- Calls
  coherence::Status call(const coherence::tcp::CallFrame&, uint64_t* value, coherence::Problem*) override;
  const coherence::tcp::Table* table() const noexcept override { return table_.get(); }
  void close() noexcept override;
  // --- NodeWorker
  coherence::Status start(coherence::NodeId, uint64_t incarnation, coherence::Problem*) override;
  const char* listens_at() const override { return "sim"; }
  void stop() noexcept override;
  // --- WorkerSignal
  void signal() noexcept override;
  // --- NodeEnd
  coherence::NodeId id() const override { return id_; }
  uint64_t incarnation() const override { return incarnation_; }
  bool is_over() const override { return stopped_; }
  void table_comes(const coherence::tcp::Table&) override;

 private:
  coherence::tcp::Mirror& mirror() { return coherence::tcp::Mirror::at(mirror_); }
  coherence::tcp::Sayings& sayings() { return coherence::tcp::Sayings::at(sayings_); }
  void send_sayings();
  coherence::Status call_broken(const coherence::tcp::CallFrame&, Ways::CallBreaks, coherence::Problem*);

  MemberAuthority& authority_;
  Ways& ways_;
  const std::function<void(const FarMember&)> ring_;
  const coherence::Membership* membership_ = nullptr;
  coherence::NodeId id_;
  uint64_t incarnation_ = 0;
  bool stopped_ = false, abandons_ = false;
  std::shared_ptr<MemberAuthority::Tool> tool_;  // null: there is no link
  std::shared_ptr<const coherence::tcp::Table> table_;
  alignas(64) std::byte mirror_[coherence::tcp::Mirror::kBytes] = {};
  alignas(64) std::byte sayings_[coherence::tcp::Sayings::kBytes] = {};
};

}  // namespace sim
