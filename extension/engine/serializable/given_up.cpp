#include "extension/engine/serializable/given_up.hpp"

namespace engine {

void leave_all_entered(TxnSystem& txns, HoldTable& table, TxnId by) {
  auto& pool = txns.pool();
  const std::atomic<uint32_t>* fence = &pool.coherence_node().fence_word();
  coherence::Line* line = nullptr;
  table.leave_all(
      by,
      [&](PageId page, bool shared, bool exclusive, TxnId next) {
        line = pool.find(page);  // frames.no-pins: as long as it is counted
        VERIFY(line != nullptr || pool.fenced());
        const uint64_t named = next.valid() ? by_word(next) : 0;
        if (line != nullptr && shared) coherence::Session::uncount_hold(*line, false, by_word(by), named, fence);
        if (line != nullptr && exclusive) coherence::Session::uncount_hold(*line, true, by_word(by), named, fence);
      },
      [&](PageId) {
        if (line != nullptr) txns.session().coherence().serve_dropped(*line);
      });
}

// The mark is there (serializable.mark-under-bucket).
Status let_go_given_up(TxnSystem& txns, HoldTable& table, SessionId session, TxnId by) {
  leave_all_entered(txns, table, by);
  return txns.tell_given_up(session, by);
}

}  // namespace engine
