// Waiting for other transactions, through PostgreSQL's lock manager (engine::Waiter), and waking the other primaries'
// waiters (engine::NodeWaker).
//
// A local transaction, or savepoint that may be rolled back alone, is waited for on its xid's lock, a local speculation
// on its token's; a remote one on the tag that the member worker holds for it (engine/txn/wait_table.hpp), and so is
// one's holds, also of this server: they may be given up before it ends.  An ERROR
// from the lock manager (timeout, deadlock, cancel) is carried past the engine.
#pragma once

#include "extension/engine/txn/host.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace gcl {

class BackendWaiter final : public engine::Waiter {
 public:
  void serve(engine::TxnSystem& txns) { txns_ = &txns; }
  coherence::Status wait_for(engine::TxnId id, engine::WaitFor why) override;
  coherence::Result<bool> enter_row_queue(const engine::RowQueue& queue) override;
  void leave_row_queue(const engine::RowQueue& queue) noexcept override;
  coherence::Status wait_for_speculation(const engine::Speculation& speculation) override;
  coherence::Status pause(uint32_t ms) override;

 private:
  engine::TxnSystem* txns_ = nullptr;
};

class NodeWakeupEvents final : public engine::NodeWaker {
 public:
  void wake(coherence::NodeSet nodes) noexcept override;
};

// Ends this process's wait for a remote transaction, if it is in one: also when the process ends in the middle of it.
void stop_waiting() noexcept;

// The member worker's part: takes and lets go tags.  Returns whether the next round is due soon.
bool tend_waits(engine::TxnSystem& txns);
// Before the first tend_waits() of a process: the tags of a former member worker went with it.
void forget_held_waits();

}  // namespace gcl
