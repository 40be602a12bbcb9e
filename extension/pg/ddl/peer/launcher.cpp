// The DDL launcher: one per primary.  Joins (joining), then watches the slots: passes wakeups on, starts and restarts
// apply workers, answers for one that cannot be started, and stops one whose coordinator no longer waits.
#include "extension/pg/boundary/monotonic.hpp"
#include "extension/pg/ddl/coordinate/ddl_outbox.hpp"
#include "extension/pg/ddl/node/data_life.hpp"
#include "extension/pg/ddl/node/database_list.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_position.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"
#include "extension/pg/ddl/node/worker_settings.hpp"
#include "extension/pg/ddl/node/worker_starts.hpp"
#include "extension/pg/ddl/peer/dead_primaries.hpp"
#include "extension/pg/ddl/peer/idle_holders.hpp"
#include "extension/pg/ddl/peer/joining.hpp"
#include "extension/pg/ddl/peer/log_end.hpp"
#include "extension/pg/ddl/record/ddl_describe.hpp"

extern "C" {
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"

PGDLLEXPORT void gcl_ddl_launcher_main(Datum);
}

#include <csignal>

namespace gcl {
namespace {

constexpr long kCheckMs = 1000;                       // a fence wakes no process
constexpr TimestampTz kEndOfSessionsUs = 10'000'000;  // how long the sessions of a server that stops may take

DdlWorker* workers() { return ddl_node_state().workers; }

// The next launcher takes part in our place, unless no session here needs that any more.
void leave(int, Datum) {
  if (ddl_pool_fenced()) return;
  const bool leaves = ShutdownRequestPending && may_leave();
  if (ddl_node_state().member && leaves) {
    ddl_channel().leave();
    ddl_node_state().member = false;
  }
  unlock_cluster();
  if (leaves) end_life();
}

void stop_if_cancelled(int index, int slot) {
  LWLockAcquire(ddl_node_state().lock, LW_SHARED);
  DdlWorker& worker = workers()[index];
  const uint64_t busy = worker.busy, cancelled = ddl_slot(slot).cancelled();
  if (busy && worker.pid && cancelled >= busy) {
    worker.stop = cancelled;
    kill(worker.pid, SIGUSR2);
  }
  LWLockRelease(ddl_node_state().lock);
}

// No session here uses that database's tables: the database will find in the log what the message says
// (ddl.member-has-applied-log).  One that was up to date before may have sessions with something under way.
template <class Answer>
void answer_for(const KeptOut* out, Answer answer) {
  if (!out->served || CountDBConnections(out->oid) == 0) return answer(true, {});
  char problem[sizeof out->reason + 64];
  snprintf(problem, sizeof problem, "55000\nthe database has not caught up here: %s", out->reason);
  answer(false, problem);
}

struct Started {      // a worker, for a message
  uint64_t sequence;  // 0: none
  int index;
  int64_t at;
};

// A server that stops ends its workers, and starts none.  Its sessions end, too, and then it leaves: the coordinator
// goes on without it.
bool about_to_leave(const Started& started) {
  return ShutdownRequestPending && monotonic_us() - started.at < kEndOfSessionsUs;
}

// A message that no process here has dealt with yet.
void see_to(int slot, uint64_t sequence, Started* started) {
  engine::DdlHeader header;
  if (!ddl_slot(slot).read(sequence, &header)) return;
  const auto answer = [=](bool ok, std::string_view text) {
    if (const coherence::NodeId waits = ddl_slot(slot).acknowledge(sequence, ok, text); waits.valid())
      ddl_wake_node(waits.value);
  };
  if (!header.to.has(coherence::NodeId{ddl_node()})) return (void)ddl_slot(slot).acknowledge(sequence, true, {});
  const int index = worker_of(slot);
  if (index >= 0) return stop_if_cancelled(index, slot);
  if (ddl_slot(slot).acknowledged() >= sequence) return;  // it answered and ended
  if (header.kind == engine::DdlKind::kAbort) return answer(true, {});
  if (const KeptOut* out = kept_out(header.database)) {
    // It is of no database, though it came from there: this primary has not done it (ddl.member-has-applied-log).
    if (header.kind == engine::DdlKind::kCommit && header.of_cluster) fall_behind();
    return answer_for(out, answer);
  }
  std::string_view problem;
  char text[256];
  if (*header.database != '\0' && !OidIsValid(find_database(header.database))) {
    snprintf(text, sizeof text, "3D000\ndatabase \"%s\" does not exist%c%s", header.database, kReplyHint,
             "CREATE DATABASE makes a database on every primary. Where it was made before on some only: SET "
             "gcl.local_administration = on, and CREATE DATABASE on those that lack it.");
    problem = text;
  } else if (started->sequence == sequence && !workers()[started->index].moved) {  // it is gone
    if (about_to_leave(*started)) return;
    problem = "58000\nno apply worker could be started; see the server's log";
  } else if (const int fresh = start_worker(header.database, slot); fresh >= 0) {
    *started = {sequence, fresh, monotonic_us()};
    return;
  } else {
    problem = "53400\nno background worker is free; raise max_worker_processes";
  }
  if (header.kind == engine::DdlKind::kCommit) fall_behind();
  answer(false, problem);
}

struct Unanswered {
  uint64_t sequence;
  int64_t since;
  bool logged;
};

// Logs once for each message: what has no answer from here, and which process waits for it.
void log_if_late(int slot, uint64_t sequence, Unanswered* late) {
  const int64_t now = monotonic_us();
  if (late->sequence != sequence) *late = {sequence, now, false};
  if (late->logged || now - late->since < kDdlPatienceUs) return;
  engine::DdlMessage message{.sequence = sequence};
  if (!ddl_slot(slot).read(sequence, &message.header)) return;
  MemoryContext context = AllocSetContextCreate(TopMemoryContext, "gcl ddl late", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  const engine::DdlHeader& header = message.header;
  const char* text = ddl_text_of(ddl_slot(slot), message);
  ereport(LOG, (errmsg("process %u of primary %d has waited for %ld s for this primary's answer (%s, database \"%s\")",
                       header.pid, header.coordinator, long((now - late->since) / 1000000), ddl_kind_name(header.kind),
                       header.database),
                text ? errdetail_internal("%s", text) : 0));
  late->logged = true;
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);
}

// True if a message waits for an answer.
bool look_at_slots() {
  static Started started[engine::kDdlSlotsMax];
  static Unanswered late[engine::kDdlSlotsMax];
  uint64_t sequences[engine::kDdlSlotsMax], dealt_with[engine::kDdlSlotsMax];
  ddl_channel().newest_messages(sequences, dealt_with);
  bool waiting = false;
  for (int slot = 0; slot < ddl_channel().slots(); ++slot) {
    if (sequences[slot] <= dealt_with[slot]) continue;
    see_to(slot, sequences[slot], &started[slot]);
    log_if_late(slot, sequences[slot], &late[slot]);
    waiting = true;
  }
  return waiting;
}

void reload_settings() {
  if (!ConfigReloadPending) return;
  ConfigReloadPending = false;
  ProcessConfigFile(PGC_SIGHUP);  // which does not reach what take_worker_settings() has set
}

[[noreturn]] void watch() {
  for (;;) {
    reload_settings();
    const uint32_t seen = wakeup_count();
    const bool waiting = look_at_slots();
    stay_up_to_date(waiting);
    tend_log();
    tend_ddl_locks();
    const bool busy = waiting || ShutdownRequestPending || has_to_catch_up() || tends_dead_primaries();
    sleep_from(seen, busy ? kHeartbeatMs : kCheckMs);
    if (ddl_pool_fenced()) stand_by_fenced();
    stop_if_asked();
  }
}

}  // namespace
}  // namespace gcl

void gcl_ddl_launcher_main(Datum) {
  using namespace gcl;
  watch_wakeups();
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  take_worker_settings();
  if (ddl_pool_fenced()) stand_by_fenced();
  (void)ddl_channel();  // attached before, so that it is detached after leave()
  before_shmem_exit(leave, 0);
  disown_former_workers();
  (void)resolve_positions();  // of a server that was stopped, or died, right behind DDL
  if (ddl_node_state().life == 0 && (ddl_node_state().refused != Refused::kNot || !begin_life())) stay_out();
  if (!ddl_node_state().member) join();
  watch();
}
