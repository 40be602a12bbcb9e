// Cell: one measurement, from a cold cluster through its warm-up to its figures.  Deterministic: the same Setup is the
// same Result, to the last digit.  One at a time in a process.
#pragma once

#include <string>
#include <vector>

#include "bench/paper/protocol.hpp"

namespace paper {

struct CellSpec {
  std::string protocol = "selcc";              // sel, directory, gam, gam-tso
  uint64_t warm_up = 1'000, measured = 1'000;  // operations of each thread, on average
  uint64_t timeline_ns = 0;                    // cumulative operations of two nodes, so often; 0: not
};

struct Result {
  bool ended = false;  // within the limit of virtual time
  double mops = 0, p50_us = 0, p99_us = 0;
  double round_trips = 0, messages = 0, bytes = 0;  // per operation
  double jain = 0, slowest = 0;                     // of nodes: Jain's index; the slowest over the fastest
  uint64_t hash = 0;
  std::vector<uint64_t> by_node;
  std::vector<std::pair<uint64_t, uint64_t>> timeline;  // operations of node 0, and of node 1
};

// Fills in the costs of that name; false: there is none.
bool set_cost(Costs* costs, const std::string& name, double value, bool times);

Result run_cell(const CellSpec& spec, const Setup& setup);

}  // namespace paper
