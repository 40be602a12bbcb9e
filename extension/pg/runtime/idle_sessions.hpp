// IdleSessions: for how long sessions of this server have waited for their clients (engine::Idleness), as the server
// itself shows it in pg_stat_activity.
//
// runtime.idle-as-shown: A session that is idle in a transaction, also in a failed one, has been so since its
//     state_change.  One that runs a statement, or whose state is not shown, is idle if it waited for its client (to
//     read rows, or to send some) at every look, and has asked for no page between.
#pragma once

#include <vector>

#include "extension/engine/serializable/hold_giver.hpp"
#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "storage/proc.h"
#include "utils/timestamp.h"
}

namespace gcl {

// For how long the server has shown that process as idle in a transaction that has not failed; nullopt: it does not.
std::optional<uint32_t> ms_idle_in_transaction(const PGPROC& proc);

class IdleSessions final : public engine::Idleness {
 public:
  explicit IdleSessions(uint32_t sessions) : seen_(sessions) {}
  std::optional<uint32_t> idle_ms(coherence::SessionId session, const engine::Holder& holder) override;

 private:
  struct Seen {
    uint64_t transaction;
    uint32_t requests;
    TimestampTz since;  // 0: it did not wait for its client
  };
  std::optional<uint32_t> by_looks(const PGPROC& proc, Seen& seen, const engine::Holder& holder, TimestampTz now);

  std::vector<Seen> seen_;
};

}  // namespace gcl
