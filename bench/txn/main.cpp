// txn_bench: one cell, as one line of JSON.
//
//   txn_bench control=occ store=selcc kind=tpcc nodes=4 payments=100
//   txn_bench store=partitioned log_ns=100000 payments=0 remote=20
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "bench/paper/cell.hpp"
#include "bench/paper/name_values.hpp"
#include "bench/txn/cell.hpp"

namespace {

bool set(const std::string& name, const std::string& value, txn::CellSpec* cell) {
  txn::WorkloadSpec& w = cell->work;
  const double number = atof(value.c_str() + (value[0] == '*' ? 1 : 0));
  const std::map<std::string, std::function<void()>> known = {
      {"control", [&] { cell->control = value; }},
      {"tries", [&] { cell->tries = int(number); }},
      {"store", [&] { cell->store = value; }},
      {"kind", [&] { w.kind = value; }},
      {"nodes", [&] { w.nodes = int(number); }},
      {"threads", [&] { w.threads = int(number); }},
      {"seed", [&] { w.seed = uint64_t(number); }},
      {"warehouses", [&] { w.warehouses = int(number); }},
      {"payments", [&] { w.payments = int(number); }},
      {"remote", [&] { w.remote = int(number); }},
      {"own_warehouses", [&] { w.own_warehouses = number != 0; }},
      {"items", [&] { w.items = int(number); }},
      {"customers", [&] { w.customers = int(number); }},
      {"pages", [&] { w.pages = uint64_t(number); }},
      {"reads", [&] { w.reads = int(number); }},
      {"steps", [&] { w.steps = int(number); }},
      {"theta", [&] { w.theta = number; }},
      {"apart", [&] { w.apart = number != 0; }},
      {"scans", [&] { w.scans = number != 0; }},
      {"frames", [&] { cell->frames = uint64_t(number); }},
      {"log_ns", [&] { cell->log_ns = uint64_t(number); }},
      {"limit_ns", [&] { cell->limit_ns = uint64_t(number); }},
      {"warm_up", [&] { cell->warm_up = uint64_t(number); }},
      {"measured", [&] { cell->measured = uint64_t(number); }},
  };
  if (name.rfind("cost.", 0) == 0) return paper::set_cost(&cell->costs, name.substr(5), number, value[0] == '*');
  const auto found = known.find(name);
  if (found == known.end()) return false;
  found->second();
  return true;
}

}  // namespace

int main(int count, char** words) {
  txn::CellSpec cell;
  const auto set_one = [&](const std::string& name, const char* value) { return set(name, value, &cell); };
  if (!paper::read_name_values(count, words, set_one)) return 2;
  if (!txn::is_known(cell)) {
    fprintf(stderr, "there is no such kind of measurement (cell.hpp)\n");
    return 2;
  }
  const txn::Result r = txn::run_cell(cell);
  printf(
      "{\"ended\":%s,\"ktps\":%.3f,\"aborts\":%.4f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"round_trips\":%.2f,\"messages\":%."
      "2f,"
      "\"hash\":\"%016llx\"}\n",
      r.ended ? "true" : "false", r.ktps, r.aborts, r.p50_us, r.p99_us, r.round_trips, r.messages,
      static_cast<unsigned long long>(r.hash));
  return 0;
}
