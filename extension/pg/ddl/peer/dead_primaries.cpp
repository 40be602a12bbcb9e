#include "extension/pg/ddl/peer/dead_primaries.hpp"
#include "extension/pg/boundary/monotonic.hpp"

#include <utility>

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"

extern "C" {
#include "utils/timestamp.h"
}

namespace gcl {
namespace {

using coherence::NodeId;
using coherence::NodeSet;

class Host final : public engine::DdlRepairHost {
 public:
  engine::DdlOutcome outcome(uint64_t txn) noexcept override { return ddl_outcome_now(txn); }
  // The launchers stop a worker that is at work for it.
  void posted(int slot, NodeSet to) noexcept override {
    ddl_wake_slot(slot, to);
    ddl_wake_others(to);
    ddl_wake_node(ddl_node());
  }
  void freed() noexcept override { freed_ = true; }
  bool has_freed() const noexcept { return freed_; }
  bool take_freed() noexcept { return std::exchange(freed_, false); }

 private:
  bool freed_ = false;
};

Host& host() {
  static Host the_host;
  return the_host;
}

bool heir = true;  // as long as this process does not know

engine::DdlRepair repair() { return {ddl_channel(), ddl_incarnation(), host()}; }

constexpr TimestampTz kDecidedPauseUs = 1'000'000;

// What was decided while its primary was away (ddl.doubt-decided-without-it).  Nothing else of such a primary is left.
void take_over_decided() {
  static int64_t again_at = 0;
  const int64_t now = monotonic_us();
  if (now < again_at) return;
  again_at = now + kDecidedPauseUs;
  repair().take_over_decided([](NodeId node) { return ddl_primary(node).state == coherence::MemberState::kAbsent; });
  if (host().has_freed()) heir = true;
}

void tell_who_waits() {
  if (!host().take_freed()) return;
  ddl_wake_others();
  wake_waiters();
}

}  // namespace

bool is_heir() noexcept { return heir && !ddl_pool_fenced(); }

bool tends_dead_primaries() noexcept { return is_heir() || !ddl_dead_primaries().empty(); }

void tend_dead_primaries() noexcept {
  if (ddl_pool_fenced()) return;
  if (!ddl_dead_primaries().empty())
    ddl_while_dead([](NodeSet dead) {
      repair().take_over(dead);
      heir = true;
    });
  take_over_decided();
  if (heir) heir = !repair().tend();
  tell_who_waits();
}

void end_former_life() noexcept {
  repair().take_over_former_life();
  heir = true;
  tend_dead_primaries();
}

bool ddl_has_ended(NodeId dead) noexcept {
  if (!repair().names(dead)) return true;
  ddl_wake_node(ddl_node());
  return false;
}

}  // namespace gcl
