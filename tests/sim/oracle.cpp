#include "oracle.hpp"

#include <algorithm>

#include "findings.hpp"
#include "scheduler.hpp"
#include "seams.hpp"

namespace sim {

void Oracle::enter(int page, bool exclusive) {
  Page& p = pages_[size_t(page)];
  const char* mode = exclusive ? "exclusively" : "shared";
  if (p.writer >= 0) object(Checker::kExclusion, "page %d latched %s while node %d writes it", page, mode, p.writer);
  if (exclusive && !p.readers.empty())
    object(Checker::kExclusion, "page %d latched %s while node %d reads it", page, mode, p.readers.back());
  if (exclusive)
    p.writer = scheduler()->node();
  else
    p.readers.push_back(scheduler()->node());
  ++sections_;
  if (tracing) trace("%s page %d, value %lu", exclusive ? "writes" : "reads", page, p.value);
  scheduler()->trace(uint64_t(page) << 1 | uint64_t(exclusive));
}

void Oracle::leave(int page, bool exclusive) {
  Page& p = pages_[size_t(page)];
  if (tracing) trace("has %s page %d", exclusive ? "written" : "read", page);
  if (exclusive)
    p.writer = -1;
  else if (const auto mine = std::find(p.readers.begin(), p.readers.end(), scheduler()->node());
           mine != p.readers.end())
    p.readers.erase(mine);
}

void Oracle::downgrade(int page) {
  Page& p = pages_[size_t(page)];
  p.writer = -1;
  p.readers.push_back(scheduler()->node());
}

void Oracle::read(int page, uint64_t value) {
  history_.read(scheduler()->fiber(), page, value);
  scheduler()->trace(value);
  const uint64_t last = pages_[size_t(page)].value;
  if (value != last)
    object(Checker::kLastWrite, "page %d says %llu, its last write was %llu", page,
           static_cast<unsigned long long>(value), static_cast<unsigned long long>(last));
}

// Values grow, and no two pages share one: the history knows the write of each.  What the page said when the call began
// may have been a dying node's write, which has not taken place.
void Oracle::read_copy(int page, uint64_t before, uint64_t value) {
  history_.read(scheduler()->fiber(), page, value);
  scheduler()->trace(value);
  for (const auto& [taken, instead] : pages_[size_t(page)].taken_back)
    if (taken == before) before = instead;
  const uint64_t last = pages_[size_t(page)].value;
  if (value < before || value > last)
    object(Checker::kLastWrite, "a copy of page %d says %llu, which was written before %llu or after %llu", page,
           static_cast<unsigned long long>(value), static_cast<unsigned long long>(before),
           static_cast<unsigned long long>(last));
}

uint64_t Oracle::write(int page) {
  const uint64_t value = ++values_;
  history_.write(scheduler()->fiber(), page, value);
  Page& p = pages_[size_t(page)];
  p.fiber = scheduler()->fiber();
  p.before = p.value;
  p.value = value;
  return value;
}

void Oracle::logged(int page) { pages_[size_t(page)].fiber = -1; }

void Oracle::died(int node) {
  for (size_t i = 0; i < pages_.size(); i++) {
    Page& p = pages_[i];
    std::erase(p.readers, node);
    if (p.writer != node) continue;
    p.writer = -1;
    if (p.fiber < 0) continue;
    history_.forget_write(p.fiber, int(i), p.value);
    p.taken_back.emplace_back(p.value, p.before);
    p.value = p.before;
    p.fiber = -1;
  }
}

void Oracle::take_back(int page, uint64_t before) {
  Page& p = pages_[size_t(page)];
  history_.forget_value(page, p.value);
  p.taken_back.emplace_back(p.value, before);
  p.value = before;
}

void Oracle::torn(int page, uint64_t one, uint64_t other) {
  if (one != other)
    object(Checker::kLastWrite, "page %d is torn: %llu and %llu", page, static_cast<unsigned long long>(one),
           static_cast<unsigned long long>(other));
}

}  // namespace sim
