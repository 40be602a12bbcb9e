// Protocol: what is compared.  One object is a whole cluster; its fibers are made by start().
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/paper/network.hpp"
#include "bench/paper/workload.hpp"

namespace paper {

struct Setup {
  WorkloadSpec work;
  Costs costs;
  uint64_t frames = 1'000;  // of each node's cache
  uint64_t remote_cores = 1;
  bool stranded = false;
  std::string off;  // parts of SELCC that are switched off, as Features::parse() reads them
  bool batched_eviction = true, dirty_ranges = true;
  uint32_t gamma = 256;
  bool counters = false;  // SELCC's, of each node, are printed when the run is over
};

class Protocol {
 public:
  virtual ~Protocol() = default;
  virtual void start() {}  // spawns what works beside the threads
  // One operation of a thread, from its fiber: latch, 8 bytes, unlatch.
  virtual void access(int node, int thread, const Access& access) = 0;
};

// What every line of every page holds, if nothing is wrong: each write adds one.  Looked at in every section.
class Truth {
 public:
  Truth(uint64_t pages, uint32_t gcl) : lines_(gcl / 64), version_(pages * lines_) {}
  void read(const Access& a, uint64_t seen) const {
    if (seen != version_[index(a)]) wrong(a, seen);
  }
  uint64_t write(const Access& a, uint64_t seen) {  // returns what to store
    read(a, seen);
    return ++version_[index(a)];
  }

 private:
  uint64_t index(const Access& a) const { return a.page * lines_ + a.line; }
  [[noreturn]] void wrong(const Access& a, uint64_t seen) const {
    fprintf(stderr, "page %llu line %u: %llu was read, %llu was written last\n", (unsigned long long)a.page, a.line,
            (unsigned long long)seen, (unsigned long long)version_[index(a)]);
    abort();
  }
  uint64_t lines_;
  std::vector<uint64_t> version_;
};

std::unique_ptr<Protocol> make_selcc(const Setup&, Network&);
// bench/rivals
std::unique_ptr<Protocol> make_sel(const Setup&, Network&);
std::unique_ptr<Protocol> make_directory(const Setup&, Network&);
std::unique_ptr<Protocol> make_gam(const Setup&, Network&, bool tso);

}  // namespace paper
