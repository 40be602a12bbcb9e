#include "coherence/transport/tcp/member/pool_links.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "coherence/base/text.hpp"

namespace coherence::tcp {
namespace {

constexpr uint64_t kPauseMinNs = 250'000'000, kPauseMaxNs = 15'000'000'000;
// How long nothing is in the log of one that is not reached, and how often it is said then.
constexpr uint64_t kUnreachedAfterNs = 5'000'000'000, kUnreachedAgainNs = 60'000'000'000;

}  // namespace

PoolLinks::PoolLinks(MemoryRoutes& memory, Mirror& mirror, Sayings& sayings, Resolve resolve, Log& log)
    : memory_(memory), mirror_(mirror), sayings_(sayings), resolve_(std::move(resolve)), log_(log) {}

// tcp.young-dialed-again, tcp.elsewhere-is-anew
void PoolLinks::table_comes(const Table& table) {
  const TableHead& head = table.head;
  for (uint32_t k = 1; k < head.memory_nodes; k++) {
    One& one = one_[k];
    const char* const address = table.memory_node[k].address;
    if (address[0] == '\0' || strcmp(one.address, address) == 0) continue;
    one = {};
    put_text(address, one.address);
    if (net::Link* const link = memory_.link({uint8_t(k)}))
      link->end("the memory node is elsewhere");  // look() dials it there, or the node is cut off
    else
      dial(k, 0);
  }
  count_ = std::max(count_, head.memory_nodes);
  settled_ = std::max(settled_, head.memory_nodes - head.young);
}

uint32_t PoolLinks::missing() const noexcept {
  for (uint32_t k = 0; k < settled_; k++)
    if (!memory_.reaches({uint8_t(k)})) return k;
  return kMemoryNodesMax;
}

// One that may have pages is, until its link is over: a connection that breaks comes again.
bool PoolLinks::is_reached(uint32_t k) const noexcept {
  return is_young(k) ? memory_.reaches({uint8_t(k)}) : memory_.link({uint8_t(k)}) != nullptr;
}

bool PoolLinks::look(uint64_t now_ns, bool joined) {
  uint32_t reached = 1;
  for (uint32_t k = 1; k < count_; k++) {
    const bool is_over = memory_.link({uint8_t(k)}) == nullptr;
    if (is_over && joined && !is_young(k)) {  // tcp.memory-nodes-all
      if (mirror_.is_cut_off()) return false;
      Problem reason;
      reason.write("this node is cut off: the link to memory node %u is over", k);
      mirror_.cut_off(reason.text);
      return true;
    }
    if (is_over && one_[k].address[0] != '\0' && now_ns >= one_[k].dial_at) dial(k, now_ns);
    if (reached == k && is_reached(k)) reached = k + 1;
    say_if_unreached(k, now_ns);
  }
  sayings_.reaches(reached);
  return false;
}

// Whether it is made is seen later.
void PoolLinks::dial(uint32_t k, uint64_t now_ns) {
  One& one = one_[k];
  one.pause_ns = std::clamp(2 * one.pause_ns, kPauseMinNs, kPauseMaxNs);
  one.dial_at = now_ns + one.pause_ns;
  const auto endpoints = resolve_(one.address, &one.why);
  if (endpoints) (void)memory_.add({uint8_t(k)}, *endpoints, &one.why);
}

void PoolLinks::say_if_unreached(uint32_t k, uint64_t now_ns) {
  One& one = one_[k];
  if (is_reached(k)) one.pause_ns = 0;
  if (is_reached(k) || !is_young(k)) {
    one.say_at = 0;
  } else if (one.say_at == 0) {
    one.say_at = now_ns + kUnreachedAfterNs;
  } else if (now_ns >= one.say_at) {
    one.say_at = now_ns + kUnreachedAgainNs;
    Text text;
    text.add("this node does not reach memory node %u at %s, which gets no pages before all nodes do", k, one.address);
    const net::Link* const link = memory_.link({uint8_t(k)});
    const char* const why = link == nullptr ? one.why.text : link->connected() ? "" : link->reason();
    log_.line(text.add("%s%s", *why == '\0' ? "" : ": ", why).c_str());
  }
}

}  // namespace coherence::tcp
