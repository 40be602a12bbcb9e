#include "extension/pg/workers/repair.hpp"
#include "extension/pg/boundary/monotonic.hpp"

#include "extension/pg/ddl/peer/dead_primaries.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/journal.hpp"

namespace gcl {

namespace {

constexpr long kFailedMs = 1000;
constexpr long kRetryMs = 5;  // for other primaries, for the WAL, or for a death that is to be recorded first

class End final : public recovery::DeadNodeEnd {
 public:
  coherence::Result<bool> end(coherence::NodeId dead, uint64_t) noexcept override {
    const auto ended = txns().end_dead_node(dead);
    if (!ended) return ended.error();
    return ddl_has_ended(dead);
  }
};

recovery::DeadNodeEnd* the_end() {
  static End end;
  return &end;
}

const char* state_of(const coherence::NodeInfo& info) {
  switch (info.state) {
    case coherence::MemberState::kDead:
      return "died; what it had is being repaired";
    case coherence::MemberState::kSwept:
      return "is repaired";
    default:
      return nullptr;
  }
}

}  // namespace

DeadPrimaries::DeadPrimaries() : sweep_(*node_pool(), *node_redo(), the_end()) {}

// As long as the node is dead, and nothing of it is repaired, what it left does not change.
coherence::Status DeadPrimaries::record(coherence::NodeId dead, coherence::Problem* problem) {
  bufmgr::BufferPool& pool = *node_pool();
  const uint64_t incarnation = pool.coherence_node().info(dead).incarnation;
  const auto recorded = [&] {
    return pool.coherence_node().recorded(dead, incarnation) ? coherence::Status() : coherence::Errc::kBusy;
  };
  if (noted_[dead.value] == incarnation) return recorded();  // a ring is many megabytes
  const bufmgr::RegionSpan ring = pool.ring_of(dead);
  const auto redo = recovery::RingIndex::read(session().memory(), ring.at, ring.bytes, incarnation, problem);
  if (!redo) return redo.error();
  const auto found = txns().verdicts_on(dead);
  if (!found) return found.error();
  const auto verdicts = to_journal(*found);
  // Else another has recorded it meanwhile, and what was read may be the next incarnation's.
  if (pool.coherence_node().info(dead).incarnation != incarnation || !pool.coherence_node().unrecorded().has(dead))
    return {};
  GCL_TRY(recovery::note_death(pool.coherence_pool(), dead, incarnation, **redo, verdicts, recovery::Patience::kTry,
                               problem));
  noted_[dead.value] = incarnation;
  return recorded();
}

long DeadPrimaries::record() {
  coherence::NodeSet left = node_pool()->coherence_node().unrecorded();
  long again = -1;
  for (; !left.empty(); left = left.without(left.first())) {
    coherence::Problem problem;
    const auto recorded = pg_entry([&] { return record(left.first(), &problem); });
    if (recorded) continue;
    if (recorded.error() == coherence::Errc::kBusy) {
      again = kRetryMs;
      continue;
    }
    tell_failure(problem.text[0] != '\0' ? problem.text : coherence::errc_name(recorded.error()), recorded.error());
    again = kFailedMs;
  }
  return again;
}

long DeadPrimaries::step() {
  tell();
  coherence::Problem problem;
  const auto step = pg_entry([&] { return sweep_.step(session(), &problem); });
  if (step.error() == coherence::Errc::kInterrupted) return kRetryMs;  // for a death to be recorded, or to stop
  if (!step) {
    tell_failure(problem.text[0] != '\0' ? problem.text : coherence::errc_name(step.error()), step.error());
    return kFailedMs;
  }
  switch (*step) {
    case recovery::PageSweep::Step::kWorked:
      return 0;
    case recovery::PageSweep::Step::kWaits:
      return kRetryMs;
    case recovery::PageSweep::Step::kIdle:
      return -1;
  }
  return -1;
}

// Tried again each second; told at once when it is another failure, else once a minute.
void DeadPrimaries::tell_failure(const char* why, coherence::Errc error) {
  if (error == coherence::Errc::kInterrupted || error == coherence::Errc::kFenced) return;
  const int64_t now = monotonic_us();
  if (strncmp(failure_, why, sizeof failure_ - 1) == 0 && now - failure_told_ < USECS_PER_MINUTE) return;
  strlcpy(failure_, why, sizeof failure_);
  failure_told_ = now;
  ereport(LOG, errmsg("gcl: repair of a dead primary did not go on: %s", why));
}

// The log has each death, and what became of it.
void DeadPrimaries::tell() {
  coherence::Node& self = node_pool()->coherence_node();
  for (uint32_t n = 0; n < node_pool()->nodes_max(); ++n) {
    const coherence::NodeInfo now = self.info({uint8_t(n)});
    coherence::NodeInfo& seen = seen_[n];
    if (now.state == seen.state && now.incarnation == seen.incarnation) continue;
    const bool was_dead = seen.dead();
    seen = now;
    if (now.dead() && !was_dead) since_[n] = monotonic_us();
    const double seconds = double(monotonic_us() - since_[n]) / 1e6;
    if (const char* state = state_of(now))
      ereport(LOG, errmsg("gcl: primary %u (process %d) %s (%.3f s)", n, now.pid, state, seconds));
    else if (was_dead)
      ereport(LOG, errmsg("gcl: primary %u may join again (%.3f s)", n, seconds));
  }
}

}  // namespace gcl
