#include "extension/pg/workers/message_worker.hpp"

#include "bufmgr/base/wakeup.hpp"
#include "extension/pg/boundary/monotonic.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/node_events.hpp"
#include "extension/pg/runtime/orphan.hpp"
#include "extension/pg/runtime/settings.hpp"
#include "extension/pg/workers/repair.hpp"
#include "extension/pg/workers/worker_process.hpp"

namespace gcl {
namespace {

bool alone() { return node().workers.now() == 1 /* ours */ && node().worker_proc[int(Worker::kFlusher)].load() < 0; }

// Repair has ended by now (node.leaver-records).  What fails is tried again as seldom as it does.
class RecordsDeaths final : public coherence::DeathRecorder {
 public:
  void record() noexcept override {
    if (monotonic_us() < due_us_) return;
    if (const long again = dead_.record(); again > 0) due_us_ = monotonic_us() + again * 1000;
  }

 private:
  DeadPrimaries dead_;
  int64_t due_us_ = 0;
};

void leave_pool() {
  flush_log();
  bool last = false;
  coherence::Problem problem;
  RecordsDeaths deaths;
  auto left = node_pool()->leave(session(), &last, &problem, &deaths);
  if (!left.ok() && last && left.error() != coherence::Errc::kCorrupt)
    ereport(
        WARNING, errmsg("gcl: left the pool as its last node, and could not save it: %s", problem.text),
        errdetail("The pool is whole in memory as long as this machine is up."),
        errhint("Make room for \"%s\"; then run gclctl stop again, or start and stop a primary.", settings.pool_file));
  else if (!left.ok())
    ereport(LOG, errmsg("gcl: could not leave the pool in order: %s", problem.text));
  else
    ereport(LOG, errmsg(last ? "gcl: left the pool as its last node; it was saved" : "gcl: left the pool"));
}

// Of primaries that came, left or died the member worker is to know at once (workers.deaths-end-waits).  One that died
// may hold what is locked for DDL, or owe an answer: the launcher sees to that (ddl/peer/dead_primaries).
void tell_of_members() {
  static uint64_t told = 0;
  coherence::Node& self = node_pool()->coherence_node();
  if (const uint64_t view = self.view(); std::exchange(told, view) == view) return;
  self.wake(self.id(), kMemberEvent);
  if (self.repairable().empty() && self.unrecorded().empty()) return;
  ddl_wake_node(ddl_node());
  wake_worker(Worker::kRepair);
}

}  // namespace

void message_worker() {
  while (!(may_stop() && alone())) {
    auto served = node_pool()->serve(session(), idle_ms());
    tell_of_members();
    if (!served.ok() && served.error() == coherence::Errc::kFenced) {
      if (node_pool()->coherence_node().is_cut_off())
        end_as_crashed("this primary was cut off from its pool, and joins it again");
      ereport(LOG, errmsg("gcl: the pool is fenced: %s", fence_reason()));
      count_for_member();
      bufmgr::signal_wakeup(member_event());
      detach_session();
      idle_while_fenced();
    }
    tick_process();
  }
  leave_pool();
}

}  // namespace gcl
