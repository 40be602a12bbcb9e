// Claims: a word per session that says what it is about to do alone, and dies with the session
// (txn.session-lock-token).
#include <cstring>

#include "bufmgr/mini_transaction.hpp"
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

// The own claim stands before the page's is looked at.
Result<bool> TxnSystem::claim_page(PageId page, bufmgr::PageType type, uint32_t offset) {
  auto mine = stake_claim();
  if (!mine) return mine.error();
  auto taken = write_claim(*mine, page, type, offset);
  if (!taken || !*taken) drop_claim();
  return taken;
}

Result<bool> TxnSystem::write_claim(Claim mine, PageId page, bufmgr::PageType type, uint32_t offset) {
  for (;;) {
    auto look = pool_.fix_optimistic(session_, page);
    if (!look) return look.error();
    const auto found = look->get<bufmgr::PageHeader>(0).type;
    const auto last = look->get<Claim>(offset);
    if (!look->validate()) continue;
    if (found != type) return Errc::kNotFound;
    auto standing = stands(last);
    if (!standing) return standing.error();
    if (*standing) return false;
    bufmgr::MiniTransaction change(pool_, session_);
    GCL_TRY(change.reserve(64));
    auto guard = pool_.fix_exclusive(session_, page);
    if (!guard) return guard.error();
    Claim now;
    std::memcpy(&now, guard->bytes() + offset, sizeof now);
    if (guard->header().type != type || now != last) continue;  // somebody was faster
    change.join(*guard);
    change.set(*guard, offset, mine);
    change.commit();
    return true;
  }
}

}  // namespace engine
