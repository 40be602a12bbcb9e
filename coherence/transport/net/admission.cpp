#include "coherence/transport/net/admission.hpp"

#include <cstdarg>
#include <cstdio>

namespace coherence::net {

static_assert(kNodesMax <= kMemoryNodesMax);

Admission::Decision Admission::refuse(Refusal refusal, const char* format, ...) noexcept {
  Decision decision{refusal};
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(decision.reason, sizeof decision.reason, format, arguments);
  va_end(arguments);
  return decision;
}

Admission::Decision Admission::judge(const Hello& hello) const noexcept {
  const Who& from = hello.from;
  if (!hello.to.same_place(self_)) return refuse(Refusal::kNotMe, "this is %s", self_.name().text);
  if (from.same_place(self_) && from.role != Role::kTool)
    return refuse(Refusal::kIsMe, "%s is this side", self_.name().text);
  const bool asks_which = from.role == Role::kTool && hello.cluster == 0;
  if (hello.cluster != cluster_ && !asks_which)
    return refuse(Refusal::kCluster, "this side belongs to another cluster");
  if (hello.to.start != 0 && hello.to.start != self_.start)
    return refuse(Refusal::kUnknownLink, "%s has started anew", self_.name().text);
  Decision decision;
  size_t tools = 0;
  for (Link* const link : links_) {
    tools += link->peer().role == Role::kTool;
    if (link->id() == hello.link) {
      decision.link = link;
      if (link->peer() == from) return decision;
      return refuse(Refusal::kUnknownLink, "the link is another's");
    }
    if (from.role != Role::kTool && link->peer().same_place(from)) decision.replaced = link;
  }
  if (hello.resumes) return refuse(Refusal::kUnknownLink, "no such link is here any more");
  if (from.role != Role::kTool) {
    const uint64_t had = newest_[from.role == Role::kNode][from.id];
    // The starts of memory nodes are times, and clocks are set back.  So none is older; but one that is there stays.
    if (from.role == Role::kMemoryNode) {
      if (decision.replaced && decision.replaced->connected())
        return refuse(Refusal::kHadItsLink, "%s is here", decision.replaced->peer().name().text);
    } else if (from.start < had)
      return refuse(Refusal::kOlder, "a newer start (%llu) was here", static_cast<unsigned long long>(had));
    const bool may_again = again_ && !(decision.replaced && decision.replaced->connected());
    if (from.start == had && !may_again) return refuse(Refusal::kHadItsLink, "this start has another link, or had one");
  }
  const bool full = from.role == Role::kTool && tools >= (links_max_ + 1) / 2;  // nodes find room beside them
  if ((links_.size() >= links_max_ || full) && !decision.replaced)
    return refuse(Refusal::kFull, "there are too many links");
  return decision;
}

void Admission::begun(Link& link) {
  links_.push_back(&link);
  if (link.peer().role != Role::kTool) newest(link.peer()) = link.peer().start;
}

void Admission::over(const Link& link) noexcept { std::erase(links_, &link); }

}  // namespace coherence::net
