#include "extension/pg/runtime/stop_points.hpp"

#include "coherence/base/verify.hpp"
#include "extension/pg/runtime/backend.hpp"

extern "C" {
#include "storage/lwlock.h"
#include "storage/pmsignal.h"
#include "storage/procsignal.h"
}

namespace gcl {

namespace {

engine::StopTable* attached_stops = nullptr;
int stop_tranche[engine::kStopPoints];
char wait_name[engine::kStopPoints][NAMEDATALEN];

// Nothing of PostgreSQL's that could raise: the engine's frames are below (extension.longjmp-crosses-no-owner).
class ServerStand final : public engine::StopStand {
 public:
  void begins(StopPoint point) noexcept override {
    pgstat_report_wait_start(PG_WAIT_LWLOCK | uint32_t(stop_tranche[int(point)]));
  }
  // Also where interrupts are held off: the stop alone ends, and what follows handles the interrupt when it can
  // (stop.ends-by-itself).
  bool ends() noexcept override {
    return ProcDiePending || QueryCancelPending || ProcSignalBarrierPending || ClientConnectionLost ||
           !PostmasterIsAlive() || (node_pool() != nullptr && node_pool()->fenced());
  }
  void ended(StopPoint, bool) noexcept override { pgstat_report_wait_end(); }
};

class ServerStops final : public engine::StopHost {
 public:
  void reached(StopPoint point, bufmgr::Session& session) noexcept override {
    VERIFY(session.guards_held() == 0 && CritSectionCount == 0);  // stop.nothing-latched
    if (!attached_stops->awaited(point)) return;
    ServerStand stand;
    attached_stops->arrive(point, uint32_t(MyProcPid), stand);
  }
};

ServerStops stops;

}  // namespace

size_t stop_points_bytes() { return sizeof(engine::StopTable); }

void stop_points_init(void* memory) {
  attached_stops = new (memory) engine::StopTable{};
  for (int i = 0; i < engine::kStopPoints; ++i) {
    snprintf(wait_name[i], sizeof wait_name[i], "GclStop_%s", engine::kStopPointNames[i]);
    stop_tranche[i] = LWLockNewTrancheId();
    LWLockRegisterTranche(stop_tranche[i], wait_name[i]);
  }
  engine::stop_host.store(&stops, std::memory_order_relaxed);  // before the first fork
}

engine::StopTable* stop_table() noexcept { return attached_stops; }

void stand_in_server(StopPoint point) noexcept {
  if (engine::TxnSystem* txns = attached_txns()) stops.reached(point, txns->session());
}

}  // namespace gcl
