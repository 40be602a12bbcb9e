// Page traces to judge replacement by: of pgbench's transactions on this engine's tables and trees, recorded while they
// run, and of made-up loads.  Each is the same on every machine and in every run.
#pragma once

#include "recorder.hpp"

namespace gcl_test {

struct NamedTrace {
  const char* name;
  Trace pages;  // 0, 1, 2...: in the order in which they first came
  uint32_t distinct = 0;
  uint64_t accesses = 0;  // recorded ones: as the session counted them
};

NamedTrace tpcb_like();
NamedTrace select_only();
// An index is built from its table, and filled further, in no order.
NamedTrace index_build();
// Look-ups by key beside a scan of the table that is a quarter of all accesses.
NamedTrace look_ups_and_a_scan();
NamedTrace zipf();             // 0.99
NamedTrace zipf_that_moves();  // other pages are the hot ones, again and again
NamedTrace zipf_and_loop();    // every fifth access goes on through pages in order, again and again
NamedTrace loop();             // all in order, again and again: what true LRU is worst at

}  // namespace gcl_test
