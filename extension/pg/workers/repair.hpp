// What the repair worker does: it ends what dead primaries have left, until their names are free again.
//
// First it records the death, if no other primary has (repair.recorded-first).
//
// Transactions and DDL first (engine::Leftovers, engine::DdlRepair), then their pages (recovery::PageSweep): a session
// that meets a page of a dead primary meanwhile repairs it by itself.
#pragma once

#include "extension/pg/runtime/node.hpp"
#include "recovery/page_sweep.hpp"

namespace gcl {

class DeadPrimaries {
 public:
  DeadPrimaries();
  // Records deaths.  How long to wait until it is to be called again, in ms; -1: all are recorded.
  long record();
  // One step.  How long to wait before the next, in ms: 0 after one that may go on, -1 when nobody is dead.
  long step();

 private:
  coherence::Status record(coherence::NodeId dead, coherence::Problem*);
  void tell();
  void tell_failure(const char* why, coherence::Errc error);

  recovery::PageSweep sweep_;
  uint64_t noted_[coherence::kNodesMax]{};  // by node: the incarnation whose death is in the journal by this process
  coherence::NodeInfo seen_[coherence::kNodesMax];  // by node, as the log was told
  char failure_[256] = "";
  int64_t failure_told_ = 0;
  int64_t since_[coherence::kNodesMax]{};  // when it was found dead
};

}  // namespace gcl
