// HoldGiver: takes holds away from sessions of its node that are idle while somebody waits for them.  For the node's
// worker; anybody else may do the same at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "extension/engine/serializable/hold_table.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

// What the host knows of its sessions.
class Idleness {
 public:
  virtual ~Idleness() = default;
  // For how long the session has waited for its client; nullopt: it does not, as far as it is known.
  virtual std::optional<uint32_t> idle_ms(SessionId session, const Holder& holder) = 0;
};

class HoldGiver {
 public:
  HoldGiver(TxnSystem& txns, HoldTable& table, Idleness& idleness)
      : txns_(txns), table_(table), idleness_(idleness), wanted_(table.sessions()) {}
  // One round, which is due whenever somebody begins to wait (TxnSystem::want_holds() wakes the node).  In how many
  // milliseconds it is due again without that; nullopt: nobody waits.  At most one batch while nobody does, and none
  // while nothing is held.
  Result<std::optional<uint32_t>> round();

 private:
  // As round(), of one session's transaction that holds what others want.
  Result<std::optional<uint32_t>> look_at(SessionId session, TxnId by, HolderState state);

  TxnSystem& txns_;
  HoldTable& table_;
  Idleness& idleness_;
  std::vector<HoldWord> wanted_;
};

}  // namespace engine
