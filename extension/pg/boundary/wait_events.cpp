#include "extension/pg/boundary/wait_events.hpp"

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "storage/lwlock.h"
}

namespace gcl {

namespace {

constexpr const char* kNames[] = {"GclPageLatch",       "GclPeer",       "GclFrame",     "GclRedoRing",   "GclRowOwner",
                                  "GclOldTransactions", "GclDdlLock",    "GclDdlSlot",   "GclDdlAnswers", "GclViews",
                                  "GclCommit",          "GclCheckpoint", "GclHeldCommit"};
static_assert(sizeof kNames / sizeof kNames[0] == size_t(WaitEvent::kCount));

int tranche[int(WaitEvent::kCount)];

}  // namespace

void register_wait_events() {
  for (int i = 0; i < int(WaitEvent::kCount); ++i) {
    tranche[i] = LWLockNewTrancheId();
    LWLockRegisterTranche(tranche[i], kNames[i]);
  }
}

uint32_t wait_event(WaitEvent event) noexcept {
  const int id = tranche[int(event)];
  return id == 0 ? PG_WAIT_EXTENSION : PG_WAIT_LWLOCK | uint32_t(id);
}

}  // namespace gcl
