#include "extension/engine/waitgraph/deadlock_detector.hpp"

#include <algorithm>

namespace engine {

static bool by_wait(const WaitRecord& a, const WaitRecord& b) { return a.wait < b.wait; }

void DeadlockDetector::ask(Phase phase, int64_t now_us, bool* asked) {
  const auto ticket = registry_.ask();
  phase_ = ticket ? phase : Phase::kIdle;
  if (!ticket) return;
  asked_us_ = now_us;
  ticket_ = *ticket;
  *asked = true;
}

void DeadlockDetector::start(int64_t now_us, bool* asked) { ask(Phase::kFirst, now_us, asked); }

// False: not yet.
bool DeadlockDetector::gather(coherence::NodeSet live, int64_t now_us, std::vector<WaitRecord>* records) {
  records->clear();
  bool all = true;
  for (; !live.empty(); live = live.without(live.first())) all &= registry_.read(live.first(), ticket_, records);
  return all || has_lasted(asked_us_, now_us, kAnswerUs + 1);
}

std::vector<Deadlock> DeadlockDetector::step(coherence::NodeSet live, int64_t now_us, bool* asked) {
  std::vector<WaitRecord> now;
  if (phase_ == Phase::kIdle || !gather(live, now_us, &now)) return {};
  if (phase_ == Phase::kFirst) {
    phase_ = Phase::kIdle;
    const WaitGraph graph(now);
    const std::vector<int> mine = graph.candidates(self_, now_us);
    if (std::none_of(mine.begin(), mine.end(), [&](int i) { return !graph.cycle_through(i).empty(); })) return {};
    first_ = std::move(now);
    std::sort(first_.begin(), first_.end(), by_wait);
    ask(Phase::kSecond, now_us, asked);
    return {};
  }
  phase_ = Phase::kIdle;
  std::erase_if(now, [&](const WaitRecord& r) {
    const auto [from, to] = std::equal_range(first_.begin(), first_.end(), r, by_wait);
    return std::find(from, to, r) == to;
  });
  first_.clear();
  WaitGraph graph(now);
  std::vector<Deadlock> deadlocks;
  for (int i : graph.candidates(self_, now_us)) {
    const std::vector<int> cycle = graph.cycle_through(i);
    if (cycle.empty()) continue;
    deadlocks.push_back({graph.record(i), graph.describe(cycle)});
    graph.remove(i);
  }
  return deadlocks;
}

}  // namespace engine
