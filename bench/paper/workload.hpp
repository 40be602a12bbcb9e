// Workload: what one thread accesses next (SELCC's micro-benchmark).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/sim/random.hpp"

namespace paper {

struct Access {
  uint64_t page;
  uint32_t line;  // of 64 bytes, in the page
  bool write;
};

struct WorkloadSpec {
  int nodes = 8, threads = 8;  // threads of each node
  uint64_t pages_per_node = 6'000;
  uint32_t gcl = 2048;
  int sharing = 100;           // percent of the pages that all nodes use
  int reads = 95;              // percent
  int repeat = 0;              // percent: the address of the access before, once more
  double theta = 0;            // of Zipf; 0: uniform
  bool single_writer = false;  // node 0 writes, all others read
  uint64_t seed = 1;
  uint64_t pages() const { return pages_per_node * uint64_t(nodes); }
};

// The distribution, once for all threads: ranks, scattered over the pages.
class Zipf {
 public:
  Zipf(uint64_t pages, double theta);
  uint64_t draw(sim::Random& random) const;

 private:
  std::vector<double> up_to_;
};

class Workload {
 public:
  Workload(const WorkloadSpec& spec, const Zipf* zipf, int node, int thread);
  Access next();

 private:
  uint64_t page();
  const WorkloadSpec& spec_;
  const Zipf* zipf_;
  const uint64_t node_;
  sim::Random random_;
  Access last_{};
  bool any_ = false;
};

}  // namespace paper
