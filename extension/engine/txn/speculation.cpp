// Speculations: a word per session that names the row it may still take back, so that others wait for that alone.
#include "extension/engine/txn/speculation.hpp"

#include "extension/engine/txn/transaction.hpp"

namespace engine {

using coherence::Batch;

// The numbers of a slot go on through the processes that have it (txn.wait-ends-with-speculation).
Status TxnSystem::read_own_speculation() {
  Batch batch(words_.clock().node());
  int now = batch.load(words_.speculation(node_, session_.id()));
  GCL_TRY(run_unordered(batch));
  speculation_ = SpeculationWord{batch.op(now).old};
  speculation_known_ = true;
  return {};
}

Status TxnSystem::speculate(uint64_t row, uint64_t host_lock) {
  VERIFY(row != 0 && row >> SpeculationWord::kRowBits == 0);
  if (!speculation_known_) GCL_TRY(read_own_speculation());
  const SpeculationWord next = speculation_.next(row);
  slot().host_lock.store(host_lock, std::memory_order_release);  // before the word; pairs with host_lock_of()
  Batch batch(words_.clock().node());
  int cas = batch.cas(words_.speculation(node_, session_.id()), speculation_.raw, next.raw);
  GCL_TRY(run_unordered(batch));
  VERIFY(batch.cas_succeeded(cas));
  speculation_ = next;
  speculation_level_ = int(txn_.levels_.size());
  return {};
}

void TxnSystem::end_speculation() noexcept {
  if (speculation_level_ == 0) return;
  speculation_level_ = 0;
  Batch batch(words_.clock().node());
  batch.cas(words_.speculation(node_, session_.id()), speculation_.raw, speculation_.over().raw);
  int watch = batch.load(words_.watch(node_, session_.id()));  // txn.wait-ends-with-speculation: behind the word
  if (!run_unordered(batch)) return;                           // the pool is gone, and with it all waiters
  speculation_ = speculation_.over();
  if (batch.op(watch).old != 0) wake_watchers(session_.id(), batch.op(watch).old);
}

// The status is loaded behind the word: while the transaction runs, its session's word is about a row of its own.
Result<std::optional<Speculation>> TxnSystem::speculation(TxnId maker, uint64_t row) {
  std::optional<Speculation> none;
  auto who = owner(maker);
  if (!who) return who.error();
  if (who->state != TxnState::kActive) return none;
  Batch batch(words_.clock().node());
  int now = batch.load(words_.speculation(who->top.node(), who->session));
  int status = batch.load(words_.status(who->top));
  GCL_TRY(run_unordered(batch));
  const SpeculationWord word{batch.op(now).old};
  if (word.row() != row || batch.op(status).old != StatusWord::active(who->session, who->top).raw) return none;
  return std::optional(Speculation{who->top.node(), who->session, word.number(), who->top});
}

Result<bool> TxnSystem::open(const Speculation& which) {
  Batch batch(words_.clock().node());
  int now = batch.load(words_.speculation(which.node, which.session));
  GCL_TRY(run_unordered(batch));
  const SpeculationWord word{batch.op(now).old};
  return word.open() && word.number() == which.number;
}

Result<bool> TxnSystem::watch(const Speculation& which) {
  GCL_TRY(be_woken_by(which.node, which.session));
  return open(which);
}

Result<uint64_t> TxnSystem::host_lock_of(const Speculation& which) {
  VERIFY(which.node == node_);
  const uint64_t lock = shared_.slot(which.session.value).host_lock.load(std::memory_order_acquire);
  auto still = open(which);  // the next speculation's lock is stored only when this one is over
  if (!still) return still.error();
  return *still ? lock : 0;
}

}  // namespace engine
