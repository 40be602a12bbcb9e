// MessageServer: what a session does for peers: takes their requests, serves what is parked, goes on with operations
// whose callers left.  The node's worker does it all the time (serve()), other sessions when they unlock or wait
// (coherence.unlocker-serves-parked).
//
// What it does for one line may leave a batch under way.  Each call of a Session ends with finish()
// (coherence.under-way-inside-calls); in between, its waits poll().
#pragma once

#include <cstdint>

#include "coherence/base/result.hpp"
#include "coherence/line/line.hpp"
#include "coherence/message/messenger.hpp"
#include "coherence/session/answers.hpp"
#include "coherence/session/latch_table.hpp"
#include "coherence/session/protocol_driver.hpp"
#include "coherence/session/session_context.hpp"

namespace coherence {

class MessageServer final : private RequestHandler {
 public:
  MessageServer(SessionContext& session, LatchTable& latches, Answers& answers, ProtocolDriver& driver)
      : session_(session), latches_(latches), answers_(answers), driver_(driver) {}

  // --- batches under way ---------------------------------------------------------------------------------------------
  bool under_way() const noexcept { return driver_.under_way(); }
  // Instead of a sleep: goes on with what is complete by now; false: nothing is under way.
  bool poll() noexcept {
    if (!under_way()) return false;
    session_.memory.poll();
    reap();
    return true;
  }
  // Waits until nothing is.
  void finish() noexcept {
    if (under_way()) finish_all();
  }

  // --- sessions that work for themselves -----------------------------------------------------------------------------
  // Answers what lies in the node's inbox.
  void help() noexcept;
  // A latch was released, and the word showed that the line is wanted.
  void unlocked(Line& line, LocalWord after) noexcept;
  // The same, as all that a session does now.
  void help_now() noexcept;
  void unlocked_now(Line& line, LocalWord after) noexcept;
  // Serves the parked request of a line that was left free.
  void serve_if_free(Line& line) noexcept;
  // The same for an evictor, which waits for no such batch (eviction.waits-for-batches).
  void serve_beside_window(Line& line) noexcept;
  // What the driver left behind.
  void after(Line& line, Left left) noexcept;
  // The log was flushed: answers what waited for that, sooner than the worker.
  void serve_flushed() noexcept;
  // A line cannot leave before its log is flushed: asks for that.
  void ask_for_log(const Line& line) noexcept;

  // --- the worker ----------------------------------------------------------------------------------------------------
  Status serve(uint32_t ms) {
    const Status result = serve_for(ms);
    finish();
    return result;
  }
  void attend() noexcept;
  bool drain_inbox() noexcept { return session_.messenger.receive(*this); }

 private:
  friend struct SessionAccess;  // tests
  void receive(NodeId from, uint16_t slot) noexcept override;
  Status serve_for(uint32_t ms);
  bool reap() noexcept;
  void complete(int place) noexcept;
  void finish_all() noexcept;
  void serve_parked(Line& line, bool worker) noexcept;
  void collect(Line& line) noexcept { after(line, driver_.collect(line).left); }
  void leave_to_worker(Line& line, bool ring) noexcept;
  void wait_to_leave(Line& line, bool ring) noexcept;
  bool drain_parked(bool worker) noexcept;
  bool drain_abandoned(bool* moved = nullptr) noexcept;
  bool watch() noexcept;  // whether it was time
  // survivor.cpp
  bool look_after_dead() noexcept;
  bool quiesce(NodeId dead) noexcept;
  bool quiesce(Line& line, NodeId dead) noexcept;
  bool confirm_grant(Line& line, NodeId dead) noexcept;
  bool drain(NodeId dead) noexcept;
  bool nothing_to_do(bool waiting) noexcept;

  SessionContext& session_;
  LatchTable& latches_;
  Answers& answers_;
  ProtocolDriver& driver_;
  bool helping_ = false, finishing_ = false;
  uint64_t watched_ns_ = 0;
  uint64_t deaths_view_ = 0;  // in which nothing was left to do for dead nodes
  uint64_t told_view_ = 0;    // with which serve() has returned
};

}  // namespace coherence
