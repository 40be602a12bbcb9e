// Claims: a word per session that says what it is about to do alone, and dies with the session (T11).
#include "extension/engine/txn/transaction.hpp"

namespace engine {

using coherence::Batch;

// The token is a value of the clock, so that no two claims are ever equal, not even of one session.
Result<Claim> TxnSystem::stake_claim() {
  VERIFY(!claimed_);
  Batch tick(words_.clock().node());
  int faa = tick.faa(words_.clock(), 1);
  GCL_TRY(run(tick));
  Claim claim = Claim::of(tick.op(faa).old, node_, session_.id());
  Batch batch(words_.clock().node());
  batch.write(words_.claim(node_, session_.id()), &claim.token, sizeof claim.token);
  GCL_TRY(run(batch));
  claimed_ = true;
  return claim;
}

void TxnSystem::drop_claim() noexcept {
  if (!claimed_) return;
  claimed_ = false;
  uint64_t none = 0;
  Batch batch(words_.clock().node());
  batch.write(words_.claim(node_, session_.id()), &none, sizeof none);
  (void)run(batch);  // without a pool there is nobody to keep out
}

Result<bool> TxnSystem::stands(Claim claim) {
  if (claim.token == 0 || claim.node().value >= words_.nodes() || claim.session().value >= words_.sessions())
    return false;
  Batch batch(words_.clock().node());
  int now = batch.load(words_.claim(claim.node(), claim.session()));
  GCL_TRY(run(batch));
  return batch.op(now).old == claim.token;
}

}  // namespace engine
