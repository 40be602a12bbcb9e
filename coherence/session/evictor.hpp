// Evictor: frames come and go: a page is assigned to a line, given up for its frame, or written back and kept.
#pragma once

#include "coherence/base/result.hpp"
#include "coherence/line/line.hpp"
#include "coherence/line/line_machine.hpp"
#include "coherence/session/latch_table.hpp"
#include "coherence/session/message_server.hpp"
#include "coherence/session/protocol_driver.hpp"
#include "coherence/session/session_context.hpp"
#include "coherence/session/waiting.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

class Evictor {
 public:
  Evictor(SessionContext& session, const Waiting& waiting, LatchTable& latches, ProtocolDriver& driver,
          MessageServer& server)
      : session_(session), waiting_(waiting), latches_(latches), driver_(driver), server_(server) {}

  // As Session has it.
  Status begin_assign(Line& line);
  void name(Line& line, PageId page) noexcept { fields(line).page.store(page.raw, std::memory_order_relaxed); }
  void end_assign(Line& line) noexcept { latches_.end_latch(line, LatchEnd::kRelease, MsiState::kInvalid); }
  void finish_evict(Line& line);

  // --- for EvictionWindow --------------------------------------------------------------------------------------------
  // Latches the line and begins its eviction, unless it is busy.  `*release`: what gives the page up, kNone if it was
  // never fetched.
  bool begin_evict(Line& line, PageId page, Post* release) noexcept;
  // Adds that to a batch; returns the place of the atomic, whose old word end_evict() is told.
  int add_release(Batch& batch, Line& line, Post release) noexcept;
  void end_evict(Line& line, uint64_t old) noexcept;

  // --- for WriteBackGroup; REQUIRES: a shared latch ------------------------------------------------------------------
  // Whether there are changes, which this session writes from now on; kWouldBlock, kRestart as WriteBackGroup::add().
  Result<bool> begin_write_back(Line& line, PageId page) noexcept;
  void add_changes(Batch& batch, Line& line) noexcept;
  void end_write_back(Line& line, bool known) noexcept;

  Memory& memory() { return session_.memory; }

 private:
  SessionContext& session_;
  const Waiting& waiting_;
  LatchTable& latches_;
  ProtocolDriver& driver_;
  MessageServer& server_;
};

}  // namespace coherence
