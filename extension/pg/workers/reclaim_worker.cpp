#include "extension/pg/workers/reclaim_worker.hpp"

#include "extension/engine/reclaim/reclaimer.hpp"
#include "extension/engine/sweep/sweeper.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/server_stop.hpp"
#include "extension/pg/workers/worker_process.hpp"

namespace gcl {
namespace {

// One step; false: there is nothing to do, or not now.
bool reclaim_step(engine::Reclaimer& reclaimer) {
  const bool wanted =
      node().reclaim_wanted.exchange(false, std::memory_order_acquire);  // pairs with deferred_frees_ended()
  auto more = reclaimer.step();
  node().reclaim_open.store(reclaimer.open_records(), std::memory_order_relaxed);
  if (auto failure = reclaimer.take_failure())
    ereport(LOG, errmsg("gcl: pages of a dropped or rolled back relation were not given back: %s",
                        coherence::errc_name(*failure)));
  if (more.ok()) return *more;
  if (wanted) node().reclaim_wanted.store(true, std::memory_order_relaxed);  // it is looked for again
  return false;
}

// The DDL log and its slots name ids: a primary that was away asks what became of them when it comes back.
class IdsInDdlLog final : public engine::NamedIds {
 public:
  explicit IdsInDdlLog(engine::TxnSystem& txns) : txns_(txns) {}
  coherence::Result<bool> any_rolled_back(uint64_t upto) override {
    if (pause_ > 0) return --pause_, true;
    if (auto bad = in_a_slot(upto); !bad || *bad) return bad;
    engine::DdlLog log(txns_.pool(), txns_.session(), ddl_channel());
    engine::DdlLogEntry entry;
    for (auto found = log.first(&entry);; found = log.next(&entry)) {
      if (!found) return found.error();
      if (!entry.valid()) return false;
      auto bad = rolled_back(engine::TxnId{entry.txn}, upto);
      if (!bad) return bad;
      if (*bad) return pause_ = kPause, true;
    }
  }

 private:
  coherence::Result<bool> rolled_back(engine::TxnId id, uint64_t upto) {
    if (id.node() != txns_.node() || id.sequence() > upto) return false;
    return txns_.was_rolled_back(id);
  }
  // So does an heir (ddl_log.id-before-entry).
  coherence::Result<bool> in_a_slot(uint64_t upto) {
    for (int i = 0; i < ddl_channel().slots(); ++i) {
      engine::DdlSlot slot = ddl_slot(i);
      const engine::TxnId id{slot.txn()};
      if (!id.valid() || !slot.owner().held()) continue;
      auto bad = rolled_back(id, upto);
      if (!bad || *bad) return bad;
    }
    return false;
  }
  static constexpr int kPause = 60;  // calls, one a second, until the log is read again
  engine::TxnSystem& txns_;
  int pause_ = 0;
};

constexpr long kSweepPauseMs = 1;  // after a few pages, so that a pass takes little of the machine and the cache

bool sweep_step(engine::Sweeper& sweeper) {
  auto more = sweeper.step();
  return more.ok() && *more;
}

}  // namespace

void reclaim_worker() {
  auto* reclaimer = new engine::Reclaimer(txns());  // as long as the process
  auto* names = new IdsInDdlLog(txns());
  auto* sweeper = new engine::Sweeper(txns(), *names, engine::Sweeper::pages_max(txns()));
  while (!may_stop()) {
    const bool ready = node().ready.load(std::memory_order_acquire);
    const bool more = ready && reclaim_step(*reclaimer);
    const bool sweeps = ready && !more && sweep_step(*sweeper);
    const long ms = sweeps ? kSweepPauseMs : server_stops() ? 100 : 1000;
    if (!more) (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
    tick_process();
    if (node_pool()->fenced()) {
      detach_session();
      idle_while_fenced();
    }
  }
}

}  // namespace gcl
