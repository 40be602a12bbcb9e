#include "extension/pg/runtime/idle_sessions.hpp"

#include <algorithm>

extern "C" {
#include "storage/backendid.h"
#include "utils/backend_status.h"
#include "utils/wait_event.h"
}

namespace gcl {

namespace {

struct Shown {
  int pid;
  BackendState state;
  TimestampTz since;
};

// The server's entries are an array by backend id, of which this process knows its own.
Shown shown_of(const PGPROC& proc) {
  const BackendId id = proc.backendId;
  if (id == InvalidBackendId || MyBEEntry == nullptr) return {};
  volatile PgBackendStatus* entry = MyBEEntry - (MyBackendId - 1) + (id - 1);
  for (;;) {
    int before, after;
    pgstat_begin_read_activity(entry, before);
    const Shown shown{entry->st_procpid, entry->st_state, entry->st_state_start_timestamp};
    pgstat_end_read_activity(entry, after);
    if (pgstat_read_activity_complete(before, after)) return shown;
  }
}

bool waits_for_client(const PGPROC& proc) {
  const uint32_t event = *const_cast<const volatile uint32*>(&proc.wait_event_info);
  return event == WAIT_EVENT_CLIENT_READ || event == WAIT_EVENT_CLIENT_WRITE;
}

uint32_t ms_since(TimestampTz since, TimestampTz now) {
  return uint32_t(std::clamp<TimestampTz>((now - since) / 1000, 0, INT_MAX));
}

}  // namespace

std::optional<uint32_t> ms_idle_in_transaction(const PGPROC& proc) {
  const Shown shown = shown_of(proc);
  if (shown.pid != proc.pid || shown.state != STATE_IDLEINTRANSACTION) return std::nullopt;
  return ms_since(shown.since, GetCurrentTimestamp());
}

std::optional<uint32_t> IdleSessions::idle_ms(coherence::SessionId session, const engine::Holder& holder) {
  if (session.value >= ProcGlobal->allProcCount) return std::nullopt;
  const PGPROC& proc = ProcGlobal->allProcs[session.value];
  const TimestampTz now = GetCurrentTimestamp();
  const Shown shown = shown_of(proc);
  Seen& seen = seen_[session.value];
  if (shown.pid != proc.pid ||
      (shown.state != STATE_IDLEINTRANSACTION && shown.state != STATE_IDLEINTRANSACTION_ABORTED))
    return by_looks(proc, seen, holder, now);
  seen.since = 0;
  return ms_since(shown.since, now);
}

std::optional<uint32_t> IdleSessions::by_looks(const PGPROC& proc, Seen& seen, const engine::Holder& holder,
                                               TimestampTz now) {
  const uint64_t transaction = holder.word().by().raw;
  const uint32_t requests = holder.requests();
  const bool goes_on = seen.since != 0 && seen.transaction == transaction && seen.requests == requests;
  seen = {transaction, requests, goes_on ? seen.since : now};
  if (!waits_for_client(proc)) seen.since = 0;
  if (seen.since == 0) return std::nullopt;
  return ms_since(seen.since, now);
}

}  // namespace gcl
