// LoneNode: this process as the only node of a pool that no server can open yet.  It is node 0, which no primary is.
// What it changes is not logged: the pool is saved when it is done, or made anew from the beginning.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/txn/transaction.hpp"
#include "tools/gclctl/cluster.hpp"

namespace gclctl {

class LoneNode {
 public:
  // Joins; fails with the reason.
  LoneNode(const fs::path& pool, const std::string& compatibility);
  // Leaves, as well as it can.
  ~LoneNode();
  LoneNode(const LoneNode&) = delete;
  // Leaves in order, or fails with the reason.  Nothing else may be called afterwards.
  void leave();

  bufmgr::BufferPool& pool() { return *pool_; }
  bufmgr::Session& session() { return *session_; }
  engine::TxnSystem& txns() { return *txns_; }

 private:
  class Never final : public bufmgr::Interrupts {
   public:
    bool pending() noexcept override { return false; }
  };
  class NoLog final : public bufmgr::LogSink {
   public:
    coherence::Lsn append(std::span<const std::byte>) override { return {1}; }
    coherence::Lsn flushed() override { return {1}; }
    void request_flush(coherence::Lsn) override {}
  };
  // Nobody else is there to wait for, or to be woken.
  class Nobody final : public engine::Waiter, public engine::NodeWaker {
   public:
    coherence::Status wait_for(engine::TxnId, engine::WaitFor) override { return coherence::Errc::kInterrupted; }
    coherence::Result<bool> enter_row_queue(const engine::RowQueue&) override { return coherence::Errc::kInterrupted; }
    void leave_row_queue(const engine::RowQueue&) noexcept override {}
    coherence::Status wait_for_speculation(const engine::Speculation&) override {
      return coherence::Errc::kInterrupted;
    }
    coherence::Status pause(uint32_t) override { return {}; }
    void wake(coherence::NodeSet) noexcept override {}
  };
  void stop_workers();

  Never never_;
  NoLog log_;
  Nobody nobody_;
  std::unique_ptr<bufmgr::BufferPool> pool_;
  std::unique_ptr<bufmgr::Session> serving_, providing_, session_;
  std::unique_ptr<engine::TxnSystem> txns_;
  std::atomic<bool> stop_ = false;
  std::thread server_, provider_;
};

}  // namespace gclctl
