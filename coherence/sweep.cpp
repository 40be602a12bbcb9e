// What a sweep does to the latch words that name a dead node (repair.*).
#include "coherence/latch/latch_word.hpp"
#include "coherence/member/sweeping.hpp"
#include "coherence/session.hpp"

namespace coherence {

// The node may join again as soon as all have drained: a bit that is dropped later would be the next incarnation's.
Result<Session::Named> Session::drop_dead(PageId page, NodeId dead, const Line* shares) {
  const Sweeping section(context_.node);
  const PoolAddress at = context_.node.pool.latch_address(page);
  for (;;) {
    if (!context_.node.members->repairable().has(dead)) return Named::kOwner;
    const auto found = memory_->load(at);
    if (!found) return found.error();
    const LatchWord word{*found};
    const bool owns = word.owner() == dead;
    const bool drops_owner = owns && shares != nullptr && shares->msi() == MsiState::kShared;
    const Named named = owns && !drops_owner ? Named::kOwner : Named::kNot;
    LatchWord without = word;
    if (word.readers().has(dead)) without = without.plus(LatchWord::drop_reader(dead));
    if (drops_owner) without = without.plus(LatchWord::drop_owner(dead));
    if (without == word) return named;
    const auto old = memory_->cas(at, word.raw, without.raw);
    if (!old) return old.error();
    if (*old == word.raw) return named;
  }
}

}  // namespace coherence
