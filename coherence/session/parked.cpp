// Requests that wait at a line: served when it is free and may leave, and else the worker's to look after.  A line
// becomes free when its batch is complete, too.
#include "coherence/base/os.hpp"
#include "coherence/session/message_server.hpp"

namespace coherence {
namespace {

constexpr int kServeRoundsMax = 8;  // of one unlock; the worker goes on

}  // namespace

// Goes on with what a complete batch was posted for.
void MessageServer::complete(int place) noexcept {
  Line& line = driver_.line_at(place);
  after(line, driver_.complete(place));
  serve_if_free(line);
}

void MessageServer::serve_parked(Line& line, bool worker) noexcept {
  if (!worker && !session_.messenger.reach_all()) return leave_to_worker(line, true);
  for (int i = 0; i < kServeRoundsMax; i++) {
    if (finishing_ || !driver_.has_room()) return leave_to_worker(line, !worker);
    Actions actions;
    {
      const LineState& state = fields(line).state;
      SpinGuard guard(fields(line).spin, session_.node.fence);
      if (state.op != LineOp::kIdle || state.parked_count == 0) return;
      if (!LatchTable::try_latch(line)) return;  // the process that has it will see `pending`
      actions =
          driver_.step_line(line, {.kind = Event::Kind::kServe, .latched = true, .may_leave = driver_.may_leave(line)});
    }
    if (actions.post != Post::kNone)
      session_.counters.add(worker ? Counter::kServedByWorker : Counter::kServedByUnlocker);
    after(line, driver_.run(line, actions, 0));
    if (actions.post == Post::kNone && actions.blocked) return wait_to_leave(line, !worker);
    LocalWord w = line.word();
    if (!w.pending() || !w.free()) return;
  }
  leave_to_worker(line, true);
}

void MessageServer::wait_to_leave(Line& line, bool ring) noexcept {
  leave_to_worker(line, false);
  if (session_.node.grant_in_flight(line)) return;  // Messenger::grant_complete() rings
  // What another process would have to be woken for takes no time here.
  if (!driver_.logged(line) && session_.word_is_near) session_.node.horizon->push(session_.id, session_.memory);
  if (driver_.logged(line)) return session_.node.ring_worker();  // it was confirmed meanwhile
  session_.counters.add(Counter::kFlushWaits);
  session_.node.horizon->request_flush(line.lsn());
  if (ring) session_.node.ring_worker();
}

void MessageServer::leave_to_worker(Line& line, bool ring) noexcept {
  uint32_t i = session_.node.index_of(line);
  session_.node.parked[i / 64].fetch_or(uint64_t{1} << i % 64, std::memory_order_acq_rel);
  session_.node.arena->parked_any.store(1, std::memory_order_seq_cst);
  if (ring) session_.node.ring_worker();
}

}  // namespace coherence
