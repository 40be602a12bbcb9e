#include "coherence/transport/tcp/member/further_memory_nodes.hpp"

#include "coherence/base/text.hpp"
#include "coherence/region/pool_header.hpp"

namespace coherence::tcp {

uint32_t FurtherMemoryNodes::count() const noexcept { return keeper_.first_header().memory_nodes.load(); }

FurtherMemoryNodes::One* FurtherMemoryNodes::of(const net::Link& link) noexcept {
  One& one = one_[link.peer().id % kMemoryNodesMax];
  return one.link == &link ? &one : nullptr;
}

void FurtherMemoryNodes::say(const char* line) { log_.line(line); }

// What it admits, and what it has to load, is in the table.
Status FurtherMemoryNodes::begun(net::Link& link, const Table& table, Problem* problem) {
  const uint32_t k = link.peer().id;
  if (k == 0 || k > count() || k >= uint32_t(kMemoryNodesMax))
    return problem->set(Errc::kNotFound, "the pool has memory nodes 0 to %u: number %u is none of them, nor the next",
                        count() - 1, k);
  One& one = one_[k];
  if (one.link != nullptr) return problem->set(Errc::kBusy, "memory node %u is here already", k);
  const MemoryNodeRecord places = one.places;  // those that nodes know stay as they are
  one = {};
  one.places = places;
  one.link = &link;
  one.send(table);
  return {};
}

// tcp.memory-node-says
Status FurtherMemoryNodes::says(net::Link& link, const MemoryNodeFrame& frame, bool paths, bool* counted,
                                Problem* problem) {
  One* const one = of(link);
  const PoolHeader& header = keeper_.first_header();
  const uint32_t k = link.peer().id;
  const auto long_long = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  *counted = false;
  if (one == nullptr || one->has_said) return problem->set(Errc::kCorrupt, "twice what a memory node has");
  if ((frame.paths != 0) != paths)
    return problem->set(
        Errc::kIncompatible,
        "memory node %u, which is reached %s, memory node 0 %s: --verbs goes with all memory nodes of a "
        "pool, or none",
        k, paths ? "over tcp" : "by verbs", paths ? "by verbs" : "over tcp");
  if (frame.saves != header.saves && frame.saves != header.saves + 1)
    return problem->set(Errc::kCorrupt, "memory node %u as of save %llu, of a pool that has been saved %llu times", k,
                        long_long(frame.saves), long_long(header.saves));
  if (k < count() && frame.bytes != header.memory_bytes[k])
    return problem->set(Errc::kCorrupt, "memory node %u with %llu bytes, of which the pool has %llu there", k,
                        long_long(frame.bytes), long_long(header.memory_bytes[k]));
  if (k == count()) {
    GCL_TRY(keeper_.count_memory_node(k, frame.bytes, frame.pages_bytes, problem));
    *counted = true;
  }
  one->has_said = true;
  one->places = frame.places;
  Text text;
  say(text.add("memory node %u is %s, at %s", k, *counted ? "the pool's from now on" : "here", frame.places.address)
          .c_str());
  return {};
}

void FurtherMemoryNodes::over(net::Link& link) {
  One* const one = of(link);
  if (one == nullptr) return;
  one->link = nullptr;
  one->has_said = false;
  one->seen = 0;
}

void FurtherMemoryNodes::send(const Table& table) {
  for (One& one : one_) one.send(table);
}

void FurtherMemoryNodes::look(const Table& table) {
  for (One& one : one_) one.look(table);
}

bool FurtherMemoryNodes::have_seen(uint64_t epoch) const noexcept {
  for (uint32_t k = 1; k < count(); k++)
    if (one_[k].link == nullptr || one_[k].seen < epoch) return false;
  return true;
}

uint32_t FurtherMemoryNodes::missing() const noexcept {
  for (uint32_t k = 1; k < count(); k++)
    if (one_[k].link == nullptr || !one_[k].has_said) return k;
  return 0;
}

void FurtherMemoryNodes::begin_order(Order order, uint64_t saves) {
  order_ = {.order = order, .saves = saves};
  for (uint32_t k = 1; k < count(); k++) {
    One& one = one_[k];
    one.done = {};
    one.asked = one.link != nullptr && one.has_said && one.link->send(kOrderFrame, bytes_of(order_)).ok();
  }
}

Status FurtherMemoryNodes::done(net::Link& link, const DoneFrame& done, Problem* problem) {
  One* const one = of(link);
  if (one == nullptr || !one->asked || done.order != order_.order || done.saves != order_.saves || one->done.saves != 0)
    return problem->set(Errc::kCorrupt, "what came of an order that it did not get");
  one->done = done;
  return {};
}

bool FurtherMemoryNodes::order_is_over(Status* status, Problem* problem) {
  bool all = true;
  *status = {};
  for (uint32_t k = 1; k < count(); k++) {
    const One& one = one_[k];
    const bool answered = one.asked && one.done.saves != 0;
    if (answered && one.done.error != 0 && status->ok())
      *status = problem->set(Errc(one.done.error), "memory node %u: %.400s", k, one.done.problem);
    if (answered) continue;
    if (one.asked && one.link != nullptr) {
      all = false;
    } else if (status->ok()) {
      *status = problem->set(Errc::kUnreached, "memory node %u is not here", k);
    }
  }
  return all;
}

}  // namespace coherence::tcp
