// ToolLink: a link of its own to a memory node, which its caller pumps: each call waits for its answer.  Calls are
// number 0's to answer; the others carry out batches.
//
// tcp.answer-behind-table: Before each answer comes the table, as it is then.
// tcp.calls-bounded: A call waits so long for its answer as ToolTimes says, and no longer; Interrupts ends it sooner.
//     After an error that is none of the answer's the link is over: what was asked may have been done.
//
// One thread of one process.
//
//   auto link = ToolLink::dial(spec, credentials, log, &problem);
//   GCL_TRY((*link)->call({.call = Call::kBeginChange}, &value, &problem));
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/member/upcalls.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/net/links.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"
#include "coherence/transport/tcp/memory/figures_frame.hpp"

namespace coherence::tcp {

struct ToolTimes {
  uint64_t answer_ns = 10'000'000'000;
  uint64_t join_ns = 60'000'000'000;   // publish(): a node that stands still has to see it, or to be dead; at least
                                       // twice the pool's patience
  uint64_t turn_ns = 600'000'000'000;  // begin_change() that waits: another node may make its arena, or repair the pool
  uint64_t save_ns = 3600'000'000'000;  // close(): the whole pool is written
  net::LinkTimes link = {};
};

class ToolLink final : private net::LinksUser {
 public:
  struct Spec {
    std::string name;  // of the address, for errors
    net::Endpoints at;
    MemoryNodeId to = {};
    uint64_t cluster = 0;  // 0: whichever it is
    uint64_t number = 0;   // the start that the tool says: on all links of one tool the same; 0: one is made
    ToolTimes times = {};
    Interrupts* interrupts = nullptr;  // outlives it
  };
  // It connects with the first call.  `log` outlives it.
  static Result<std::unique_ptr<ToolLink>> dial(const Spec&, net::Credentials, Log& log, Problem*);
  // Tells the other side that the link ends.
  ~ToolLink();
  ToolLink(const ToolLink&) = delete;

  // The answer's error, and its words; kUnreached, kInterrupted: none came; kSystem: it cannot be understood.  The
  // problem says why, with the address.  `value` may be null.
  Status call(const CallFrame&, uint64_t* value, Problem*);
  bool over() const noexcept { return link_ == nullptr; }
  uint64_t number() const noexcept { return number_; }
  // As of the last call's answer; null: none came.
  const Table* table() const noexcept { return answered_ && table_came_ ? &table_ : nullptr; }
  // REQUIRES: kHeader was answered.
  const HeaderRecord& header() const noexcept { return header_; }

  // What the memory node has done so far; errors as call().
  Status figures(FiguresRecord*, Problem*);
  // Has a batch carried out; it is done then.  Its outcome is unknown after an error.
  Status run(Batch&, Problem*);

 private:
  ToolLink(const Spec& spec, Log& log);
  Errc no_answer() const noexcept { return broken_ ? Errc::kSystem : Errc::kUnreached; }
  Status send(uint16_t type, std::span<const std::byte> payload, uint64_t until, const char* what, Problem*);
  Status wait(const bool& done, uint64_t until, const char* what, Problem*);
  uint64_t bound_of(const CallFrame&) const noexcept;
  Status take(uint16_t type, std::span<const std::byte> payload, Problem*);

  void frame(net::Link&, uint16_t type, std::span<const std::byte> payload) override;
  void over(net::Link&) override;
  void log(const char* line) override { log_.line(line); }

  const Spec spec_;
  const uint64_t number_;
  Log& log_;
  std::unique_ptr<net::Links> links_;
  net::Link* link_ = nullptr;  // null: it is over
  Problem why_;                // it is
  bool broken_ = false;        // for what one side has sent
  uint32_t tag_ = 0;
  bool table_came_ = false, answered_ = false;  // since the last call
  AnswerFrame answer_;
  Table table_ = {};
  HeaderRecord header_ = {};
  FiguresRecord* figures_ = nullptr;  // awaited
  Batch* batch_ = nullptr;            // under way
  std::vector<Op> ops_;               // its own
  std::vector<std::byte> request_;
};

const char* call_name(Call) noexcept;

}  // namespace coherence::tcp
