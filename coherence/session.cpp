#include "coherence/session.hpp"

#include <cstdio>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/eviction_window.hpp"
#include "coherence/write_back_group.hpp"

namespace coherence {

Session::Session(Node& node, SessionId id, Interrupts* interrupts)
    : node_(node),
      counters_(node.parts().sessions[id.value].counters),
      memory_(node.transport().open_memory(node.parts(), counters_)),
      messenger_(node.transport().open_messenger(node.parts(), counters_)),
      context_{.node = node.parts(),
               .id = id,
               .interrupts = interrupts,
               .counters = counters_,
               .slot = node.parts().sessions[id.value],
               .memory = *memory_,
               .messenger = *messenger_,
               .flight = flight_},
      waiting_(context_),
      latches_(context_, waiting_),
      answers_(context_),
      driver_(context_, latches_, answers_),
      server_(context_, latches_, answers_, driver_),
      requester_(context_, waiting_, latches_, driver_, server_),
      evictor_(context_, waiting_, latches_, driver_, server_),
      flight_(node, id) {
  VERIFY(id.value < node.sessions_max());
  adopt(*memory_);
  context_.slot.in_use.store(1, std::memory_order_release);
  context_.node.arena->sessions.fetch_add(1, std::memory_order_relaxed);
  context_.node.sessions_here.fetch_add(1, std::memory_order_acq_rel);
}

Session::~Session() {
  messenger_->end();
  context_.node.sessions_here.fetch_sub(1, std::memory_order_acq_rel);
  context_.node.arena->sessions.fetch_sub(1, std::memory_order_relaxed);
  context_.slot.in_use.store(0, std::memory_order_release);
}

void Session::outcome_unknown() noexcept {
  char reason[120];
  snprintf(reason, sizeof reason, "node %d lost a memory node in the middle of an operation", node_.id().value);
  node_.cut_off(reason);
}

void Session::hold(Line& line, bool exclusive, uint64_t by) {
  LineState& state = fields(line).state;
  SpinGuard guard(fields(line).spin, context_.node.fence);
  auto& count = exclusive ? state.holds_exclusive : state.holds_shared;
  VERIFY(state.msi == MsiState::kModified || (!exclusive && state.msi == MsiState::kShared));
  VERIFY(++count != 0 && by >> kHolderBits == 0);
  state.held_by = by;
  fields(line).holding.fetch_or(LineFields::kHeld, std::memory_order_relaxed);
}

void Session::drop_hold(Line& line, bool exclusive, uint64_t by, uint64_t next) {
  uncount_hold(line, exclusive, by, next, context_.node.fence);
  serve_dropped(line);
}

void Session::uncount_hold(Line& line, bool exclusive, uint64_t by, uint64_t next,
                           const std::atomic<uint32_t>* fence) noexcept {
  LineState& state = fields(line).state;
  SpinGuard guard(fields(line).spin, fence);
  auto& count = exclusive ? state.holds_exclusive : state.holds_shared;
  VERIFY(count-- != 0);
  if (state.held_by == by) state.held_by = next;
  if (state.holds_shared == 0 && state.holds_exclusive == 0)
    fields(line).holding.fetch_and(uint8_t(~LineFields::kHeld), std::memory_order_relaxed);
}

void Session::serve_dropped(Line& line) noexcept {
  server_.serve_if_free(line);
  server_.finish();
}

Status Session::try_evict(Line& line, PageId page) {
  struct : FrameTaker {
    void take(Line&, PageId) noexcept override { taken = true; }  // the caller has it
    bool taken = false;
  } taker;
  Line* one = &line;
  int leaving;
  {
    EvictionWindow window(*this, taker);
    leaving = window.add(&one, &page, 1);
  }
  if (leaving == 0) return Errc::kWouldBlock;
  return taker.taken ? Status() : Errc::kFenced;  // transport.unknown-never-success
}

Status Session::write_back(Line& line, PageId page) {
  WriteBackGroup group(*this);
  const auto added = group.add(line, page);
  if (!added) return added.error();
  bool known = true;
  group.run([&](int, bool written) { known = written; });
  return known ? Status() : Errc::kFenced;  // transport.unknown-never-success
}

}  // namespace coherence
