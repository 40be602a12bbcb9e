// One measurement: a workload, a kind of concurrency control, and what it stands on.  Deterministic, as
// paper::run_cell().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/paper/protocol.hpp"
#include "bench/txn/engine.hpp"
#include "bench/txn/workload.hpp"

namespace txn {

struct CellSpec {
  std::string control = "2pl";  // to, occ; page-holds, row-holds, validation
  std::string store = "selcc";  // sel; partitioned: 2pl, and two-phase commit
  int tries = 0;                // product-like controls: how often a step that was refused is tried again
  WorkloadSpec work;
  paper::Costs costs;
  uint64_t frames = 4'000;                 // of each node's cache
  uint64_t log_ns = 0;                     // of a flush; 0: there is no log
  uint64_t warm_up = 100, measured = 200;  // committed transactions of each thread, on average
  uint64_t limit_ns = 100'000'000'000;     // of virtual time
  bool keep_history = false;
};

struct Result {
  bool ended = false;             // else the limit came first
  double ktps = 0;                // thousands of commits a second, of virtual time
  double aborts = 0;              // for each commit
  double p50_us = 0, p99_us = 0;  // with its retries
  double round_trips = 0, messages = 0;
  uint64_t hash = 0;
  std::vector<Seen> history;  // all that were committed
};

// False: there is no such kind.
bool is_known(const CellSpec&);
Result run_cell(const CellSpec&);

// Whether some order of whole transactions explains what each has seen; else why not.
bool is_serializable(const std::vector<Seen>&, std::string* why);

}  // namespace txn
