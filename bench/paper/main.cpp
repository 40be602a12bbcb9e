// paper_bench: one cell of the paper's tables, as one line of JSON.
//
//   paper_bench protocol=selcc nodes=8 threads=8 reads=95 repeat=50
//   paper_bench protocol=sel theta=0.99 cost.round_trip_ns=*1.3      a cost, or times a number
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "bench/paper/cell.hpp"
#include "bench/paper/name_values.hpp"

namespace {

using paper::CellSpec;
using paper::Setup;

bool set(const std::string& name, const std::string& value, CellSpec* cell, Setup* setup) {
  paper::WorkloadSpec& w = setup->work;
  const double number = atof(value.c_str() + (value[0] == '*' ? 1 : 0));
  const std::map<std::string, std::function<void()>> known = {
      {"protocol", [&] { cell->protocol = value; }},
      {"warm_up", [&] { cell->warm_up = uint64_t(number); }},
      {"measured", [&] { cell->measured = uint64_t(number); }},
      {"timeline_ns", [&] { cell->timeline_ns = uint64_t(number); }},
      {"nodes", [&] { w.nodes = int(number); }},
      {"threads", [&] { w.threads = int(number); }},
      {"pages", [&] { w.pages_per_node = uint64_t(number); }},
      {"gcl", [&] { w.gcl = uint32_t(number); }},
      {"sharing", [&] { w.sharing = int(number); }},
      {"reads", [&] { w.reads = int(number); }},
      {"repeat", [&] { w.repeat = int(number); }},
      {"theta", [&] { w.theta = number; }},
      {"single_writer", [&] { w.single_writer = number != 0; }},
      {"seed", [&] { w.seed = uint64_t(number); }},
      {"frames", [&] { setup->frames = uint64_t(number); }},
      {"remote_cores", [&] { setup->remote_cores = uint64_t(number); }},
      {"stranded", [&] { setup->stranded = number != 0; }},
      {"off", [&] { setup->off = value; }},
      {"batched_eviction", [&] { setup->batched_eviction = number != 0; }},
      {"dirty_ranges", [&] { setup->dirty_ranges = number != 0; }},
      {"counters", [&] { setup->counters = number != 0; }},
      {"gamma", [&] { setup->gamma = number < 0 ? ~0u : uint32_t(number); }},
  };
  if (name.rfind("cost.", 0) == 0) return paper::set_cost(&setup->costs, name.substr(5), number, value[0] == '*');
  const auto found = known.find(name);
  if (found == known.end()) return false;
  found->second();
  return true;
}

}  // namespace

int main(int count, char** words) {
  CellSpec cell;
  Setup setup;
  const auto set_one = [&](const std::string& name, const char* value) { return set(name, value, &cell, &setup); };
  if (!paper::read_name_values(count, words, set_one)) return 2;
  const paper::Result r = paper::run_cell(cell, setup);
  if (!r.ended) {
    fprintf(stderr, "the operations did not end\n");
    return 1;
  }
  printf(
      "{\"mops\":%.4f,\"p50_us\":%.2f,\"p99_us\":%.2f,\"round_trips\":%.3f,\"messages\":%.3f,\"bytes\":%.1f,"
      "\"jain\":%.4f,\"slowest\":%.4f,\"hash\":\"%016llx\",\"by_node\":[",
      r.mops, r.p50_us, r.p99_us, r.round_trips, r.messages, r.bytes, r.jain, r.slowest,
      static_cast<unsigned long long>(r.hash));
  for (size_t i = 0; i < r.by_node.size(); i++)
    printf("%s%llu", i ? "," : "", static_cast<unsigned long long>(r.by_node[i]));
  printf("],\"timeline\":[");
  for (size_t i = 0; i < r.timeline.size(); i++)
    printf("%s[%llu,%llu]", i ? "," : "", static_cast<unsigned long long>(r.timeline[i].first),
           static_cast<unsigned long long>(r.timeline[i].second));
  printf("]}\n");
  return 0;
}
