// What other folders have to do when a transaction ends, in an order that is stated here and nowhere else.
#pragma once

namespace gcl {

// Before the commit from first to last, at the end the other way round.
enum class TransactionPart : int { kIndexSizes, kDdl, kCount };

struct TransactionCallbacks {
  void (*pre_commit)();                // may raise
  void (*committed)() noexcept;        // the engine's transaction has committed, as the server's
  void (*aborted)() noexcept;          // the engine's transaction has been rolled back
  void (*forget)() noexcept;           // every end, also of a parallel worker's transaction
  bool (*forbids_prepare)() noexcept;  // PREPARE TRANSACTION is refused
};

void install(TransactionPart part,
             const TransactionCallbacks& callbacks);  // from _PG_init; null members: nothing to do

}  // namespace gcl
