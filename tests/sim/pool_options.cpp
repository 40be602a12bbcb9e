// What a seed decides where the users go through bufmgr.
#include "options.hpp"
#include "random.hpp"

namespace sim {

Options pool_options_of(uint64_t seed) {
  Options o;
  o.seed = seed;
  o.pool = true;
  Random r(Random::mix(seed ^ 0xb0f));
  o.nodes = int(r.between(2, 5));
  o.threads = int(r.between(1, 3));
  // A user latches two pages and holds a third: with fewer frames than all users want, all would wait for one.
  o.frames = int(3 * o.threads + r.between(2, 9));
  o.pages = int(r.one_in(4) ? r.between(2, 6) : r.between(12, 30));
  o.operations = int(r.between(20, 60));
  o.gamma = uint32_t(r.one_in(2) ? 16 : r.between(1, 8));
  o.writes_percent = uint32_t(r.between(5, 80));
  o.think_ns_max = r.one_in(2) ? 1'000 : 8'000;
  o.lazy_log = r.one_in(2);
  o.holds = r.one_in(3);
  o.two_pages = r.one_in(2);
  o.interrupt_one_in = r.one_in(3) ? uint32_t(r.between(5, 50)) : 0;
  o.noise = r.one_in(3);
  o.one_home = r.one_in(2);
  o.second_chance = r.one_in(3);
  o.large_one_in = r.one_in(2) ? uint32_t(r.between(1, 4)) : 0;
  if (r.one_in(8)) {  // the redo ring is short of room all the time
    o.large_one_in = 1;
    o.writes_percent = 80;
    o.operations = 60;
    o.lazy_log = true;
  }

  static constexpr uint32_t kGrains[] = {1, 3, 10, 40};
  o.pace.grain = kGrains[r.below(4)];
  o.pace.step_ns_max = r.one_in(2) ? 100 : 1'000;
  o.pace.verb_ns_max = r.one_in(2) ? 300 : 5'000;
  o.pace.wake_ns_max = r.one_in(2) ? 2 * kUs : 50 * kUs;
  o.pace.stall_one_in = r.one_in(2) ? uint32_t(r.between(200, 5'000)) : 0;
  o.pace.stall_ns_max = r.one_in(2) ? 20 * kUs : 2'000 * kUs;
  o.pace.spurious_one_in = r.one_in(3) ? 8 : 0;

  if (r.one_in(4)) {
    o.slow_node = int(r.below(uint64_t(o.nodes)));
    o.slow_times = uint32_t(r.between(2, 20));
  }
  if (r.one_in(4)) {
    o.pauses = int(r.between(1, 5));
    o.pause_ns_max = 20'000 * kUs;
  }
  if (r.one_in(4)) o.leaver = int(r.below(uint64_t(o.nodes)));
  if (r.one_in(4)) {
    o.crash_node = int(r.below(uint64_t(o.nodes)));
    o.crash_point = r.between(1, uint64_t(o.operations * o.threads) * 250 / o.pace.grain + 100);
    o.orphaned_ns = r.one_in(3) ? r.between(10 * kUs, 20'000 * kUs) : 0;
    if (o.leaver == o.crash_node) o.leaver = -1;
  }
  o.loses_memory = Random(Random::mix(seed ^ 0x105e5)).one_in(2);
  o.checkers &= ~only(Checker::kFairness);  // frames are not waited for in turns
  return o;
}

}  // namespace sim
