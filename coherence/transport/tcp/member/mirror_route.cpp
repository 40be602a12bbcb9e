#include "coherence/transport/tcp/member/mirror_route.hpp"

#include "coherence/base/text.hpp"

namespace coherence::tcp {

MirrorRoute::MirrorRoute(Mirror& mirror, Sayings& sayings, MemoryRoutes& memory, MembersChanged& changed, Log& log)
    : mirror_(mirror), sayings_(sayings), memory_(memory), changed_(changed), log_(log), table_(new Table) {}

void MirrorRoute::frame(net::Link& link, uint16_t type, std::span<const std::byte> payload) {
  Problem problem;
  if (type != kTableFrame)
    problem.write("a frame of type %u", unsigned{type});
  else if (decode_table(payload, table_.get(), &problem)) {
    changed_.table_comes(*table_);
    if (mirror_.take(*table_)) changed_.members_changed();
    return;
  }
  Text text;  // tcp.nothing-believed
  log_.line(text.add("ends the link to %s, which sent %s", link.peer().name().text, problem.text).c_str());
  link.end(problem.text);
}

void MirrorRoute::room(net::Link&) {
  waits_ = false;
  take();
}

void MirrorRoute::over(net::Link& link) {
  Problem reason;
  reason.write("this node is cut off: the link to memory node 0 is over: %.150s", link.reason());
  mirror_.cut_off(reason.text);
  changed_.members_changed();
}

void MirrorRoute::take() {
  const uint64_t changes = sayings_.changes();
  net::Link* const link = memory_.link(MemoryNodeId{0});
  if (changes == sent_ || waits_ || link == nullptr) return;
  const SayingsRecord record = record_of(sayings_);
  const Status sent = link->send(kSayingsFrame, bytes_of(record));
  waits_ = sent.error() == Errc::kNoSpace;
  if (sent) sent_ = changes;
}

}  // namespace coherence::tcp
