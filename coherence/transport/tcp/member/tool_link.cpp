#include "coherence/transport/tcp/member/tool_link.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/transport/tcp/member/patience.hpp"
#include "coherence/transport/tcp/memory/batch_frame.hpp"

namespace coherence::tcp {
namespace {

constexpr int kSliceMs = 100;  // between two looks at Interrupts; a signal ends it sooner

// Tools have no order: any number that is not 0, and that a log may name.
uint64_t number_of_tool() noexcept { return uint64_t(getpid()) << 32 | (monotonic_ns() >> 10 & 0xffffffff); }

}  // namespace

const char* call_name(Call call) noexcept {
  switch (call) {
    case Call::kHeader:
      return "what the pool's header says";
    case Call::kBeginChange:
      return "that members may change";
    case Call::kEndChange:
      return "that the change is over";
    case Call::kAllDead:
      return "which nodes are dead";
    case Call::kForget:
      return "that dead nodes are repaired";
    case Call::kReserve:
      return "an incarnation";
    case Call::kPublish:
      return "that the node is in the pool";
    case Call::kWithdraw:
      return "that the node has left";
    case Call::kClose:
      return "that the pool is saved";
  }
  return "something";
}

ToolLink::ToolLink(const Spec& spec, Log& log)
    : spec_(spec), number_(spec.number != 0 ? spec.number : number_of_tool()), log_(log) {}

Result<std::unique_ptr<ToolLink>> ToolLink::dial(const Spec& spec, net::Credentials credentials, Log& log,
                                                 Problem* problem) {
  std::unique_ptr<ToolLink> tool(new ToolLink(spec, log));
  auto links =
      net::Links::make({.self = net::Who::tool(tool->number_), .cluster = spec.cluster, .times = spec.times.link},
                       std::move(credentials), *tool, problem);
  if (!links) return links.error();
  tool->links_ = links.take();
  auto link = tool->links_->dial(net::Who::memory_node(spec.to, 0), spec.at, problem);
  if (!link) return link.error();
  tool->link_ = *link;
  return tool;
}

ToolLink::~ToolLink() {
  if (link_ == nullptr) return;
  link_->end("the tool is done");
  links_->flush();
}

uint64_t ToolLink::bound_of(const CallFrame& call) const noexcept {
  if (call.call == Call::kClose) return spec_.times.save_ns;
  if (call.call == Call::kPublish)
    return std::max(spec_.times.join_ns, 2 * patience_ns(table_.head.patience_ms));  // as of an answer before
  return call.call == Call::kBeginChange && call.tries == 0 ? spec_.times.turn_ns : spec_.times.answer_ns;
}

Status ToolLink::call(const CallFrame& call, uint64_t* value, Problem* problem) {
  CallFrame tagged = call;
  tagged.tag = ++tag_;
  table_came_ = answered_ = false;
  const uint64_t until = monotonic_ns() + bound_of(call);
  const char* const what = call_name(call.call);
  GCL_TRY(send(kCallFrame, bytes_of(tagged), until, what, problem));
  GCL_TRY(wait(answered_, until, what, problem));
  if (value != nullptr) *value = answer_.value;
  if (answer_.error == Errc::kOk) return {};
  return problem->set(answer_.error, "%s", answer_.problem);
}

Status ToolLink::figures(FiguresRecord* figures, Problem* problem) {
  figures_ = figures;
  answered_ = false;
  const uint64_t until = monotonic_ns() + spec_.times.answer_ns;
  Status done = send(kAskFiguresFrame, {}, until, "its figures", problem);
  if (done) done = wait(answered_, until, "its figures", problem);
  figures_ = nullptr;
  return done;
}

Status ToolLink::run(Batch& batch, Problem* problem) {
  ops_.clear();
  for (int i = 0; i < batch.size(); i++) ops_.push_back(batch.op(i));
  VERIFY(can_travel(ops_));  // tcp.batch-bounded
  request_.resize(request_bytes(ops_));
  encode_request(batch.to(), ++tag_, ops_, request_.data());
  batch_ = &batch;
  answered_ = false;
  const uint64_t until = monotonic_ns() + spec_.times.answer_ns;
  Status done = send(kRequestFrame, request_, until, "the result of a batch", problem);
  if (done) done = wait(answered_, until, "the result of a batch", problem);
  batch_ = nullptr;
  for (int i = 0; i < batch.size(); i++) batch.op(i).old = ops_[size_t(i)].old;
  batch.state.store(done ? BatchState::kDone : BatchState::kUnknown, std::memory_order_release);  // pairs with done()
  return done;
}

Status ToolLink::send(uint16_t type, std::span<const std::byte> payload, uint64_t until, const char* what,
                      Problem* problem) {
  for (;;) {
    const Status sent = link_ != nullptr ? link_->send(type, payload) : Status(Errc::kNotFound);
    if (sent) return {};
    if (sent.error() != Errc::kNoSpace)
      return problem->set(link_ == nullptr ? no_answer() : Errc::kSystem,
                          "memory node %u at %s was not asked %s: %.300s", unsigned{spec_.to.value}, spec_.name.c_str(),
                          what, link_ == nullptr ? why_.text : "the frame is too long");
    static constexpr bool kNever = false;  // there is room when something was acknowledged
    links_->wait(kSliceMs);
    if (monotonic_ns() >= until) return wait(kNever, until, what, problem);
  }
}

// Until `done`, which a frame sets.
Status ToolLink::wait(const bool& done, uint64_t until, const char* what, Problem* problem) {
  while (!done) {
    if (link_ == nullptr)
      return problem->set(no_answer(), "memory node %u at %s did not say %s: %.300s", unsigned{spec_.to.value},
                          spec_.name.c_str(), what, why_.text);
    const uint64_t now = monotonic_ns();
    const bool interrupted = spec_.interrupts != nullptr && spec_.interrupts->pending();
    if (now < until && !interrupted) {
      links_->wait(int(std::min<uint64_t>((until - now + 999'999) / 1'000'000, kSliceMs)));
      continue;
    }
    const Errc error = interrupted ? Errc::kInterrupted : Errc::kUnreached;
    problem->set(error, "memory node %u at %s has not said %s%s%.250s", unsigned{spec_.to.value}, spec_.name.c_str(),
                 what, link_->connected() ? (interrupted ? ", and the wait was ended" : " in time") : ": ",
                 link_->connected() ? "" : link_->reason());
    link_->end(interrupted ? "the tool was interrupted" : "the tool waits no longer");
    links_->flush();
    (void)links_->wait(0);  // over()
    return error;
  }
  return {};
}

// tcp.nothing-believed, here about a memory node.
void ToolLink::frame(net::Link& link, uint16_t type, std::span<const std::byte> payload) {
  Problem problem;
  if (take(type, payload, &problem)) return;
  Problem why;
  why.write("it sent %.400s", problem.text);
  broken_ = true;
  link.end(why.text);
}

Status ToolLink::take(uint16_t type, std::span<const std::byte> payload, Problem* problem) {
  if (type == kTableFrame) {
    table_came_ = true;
    return decode_table(payload, &table_, problem);
  }
  if (type == kFiguresFrame && figures_ != nullptr && !answered_) {
    GCL_TRY(decode_figures(payload, figures_, problem));
    answered_ = true;
    return {};
  }
  if (type == kResultFrame && batch_ != nullptr && !answered_) {
    GCL_TRY(decode_result(payload, batch_->to(), tag_, ops_, problem));
    answered_ = true;
    return {};
  }
  if (type != kAnswerFrame) return problem->set(Errc::kCorrupt, "a frame of type %u", unsigned{type});
  GCL_TRY(decode_answer(payload, &answer_, &header_, problem));
  if (answered_ || batch_ != nullptr || figures_ != nullptr || answer_.tag != tag_)
    return problem->set(Errc::kCorrupt, "an answer that nobody waits for");
  if (!table_came_) return problem->set(Errc::kCorrupt, "an answer without the table");
  answered_ = true;
  return {};
}

void ToolLink::over(net::Link& link) {
  why_.write("%s", link.reason());
  broken_ |= link.ending() == net::Ending::kBroken;
  link_ = nullptr;
}

}  // namespace coherence::tcp
