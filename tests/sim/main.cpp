// sim: runs one seed, or many.
//   sim --seed 17 [--nodes 5] [--mutation NAME] ...    one run; what a failed test prints
//   sim --seeds 1000 5000                              1000 to 4999, and what they came to
//   sim --pool --seed 17, sim --pool --seeds ...       with bufmgr
//   sim --members --seeds ...                          survivors, all with far members
//   sim --mutations 40 [join-unseen]                   which checker sees which mutation, alone, in how many seeds
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "coherence/stats/counters.hpp"
#include "run.hpp"

namespace {

using Clock = std::chrono::steady_clock;

int one(const sim::Options& o) {
  const sim::Outcome out = sim::run(o);
  printf("%s\n%d nodes of %d users, %d pages in %d frames, gamma %u, grain %u%s\n", sim::command_of(o).c_str(), o.nodes,
         o.threads, o.pages, o.frames, o.gamma, o.pace.grain, out.fenced ? "; fenced" : "");
  printf(
      "%lu sections, %lu yields, %lu switches in %.1f ms of virtual time; longest wait %lu of %lu us; trace %016lx\n",
      out.sections, out.yields, out.switches, double(out.virtual_ns) / 1e6, out.longest_wait_ns / 1000,
      out.allowed_wait_ns / 1000, out.hash);
  if (o.trace)
    for (int c = 0; c < coherence::kCounters; c++)
      printf("%20s %lu\n", coherence::counter_name(coherence::Counter(c)), out.counters[size_t(c)]);
  if (out.failed) printf("FAILED: %s: %s\n", sim::checker_name(out.checker), out.text.c_str());
  return out.failed ? 1 : 0;
}

int many(uint64_t from, uint64_t to, sim::Options (*options_of)(uint64_t), sim::Mutation mutation = {}) {
  const auto begin = Clock::now();
  uint64_t sections = 0, yields = 0, fenced = 0, failed = 0, most_yields = 0, longest_ns = 0;
  double worst = 0;
  for (uint64_t seed = from; seed < to; seed++) {
    sim::Options o = options_of(seed);
    o.mutation = mutation;
    const sim::Outcome out = sim::run(o);
    sections += out.sections;
    yields += out.yields;
    fenced += out.fenced;
    most_yields = std::max(most_yields, out.yields);
    longest_ns = std::max(longest_ns, out.virtual_ns);
    worst = std::max(worst, double(out.longest_wait_ns) / double(out.allowed_wait_ns));
    if (!out.failed) continue;
    failed++;
    printf("FAILED: %s: %s\n  %s\n", sim::checker_name(out.checker), out.text.c_str(), sim::command_of(o).c_str());
    fflush(stdout);
  }
  printf(
      "%lu seeds, %lu failed, %lu fenced; %lu sections, %lu yields (at most %lu in a run, and %.0f ms of virtual "
      "time), "
      "%.1f s; the longest wait was %.0f%% of its bound\n",
      to - from, failed, fenced, sections, yields, most_yields, double(longest_ns) / 1e6,
      std::chrono::duration<double>(Clock::now() - begin).count(), worst * 100);
  return failed ? 1 : 0;
}

// `only`: of that one; kCount: of all.
int mutations(uint64_t seeds, sim::Mutation only) {
  for (int m = 1; m < int(sim::Mutation::kCount); m++) {
    if (only != sim::Mutation::kCount && only != sim::Mutation(m)) continue;
    printf("%-22s", sim::mutation_name(sim::Mutation(m)));
    for (int c = 1; c <= int(sim::kLastChecker); c++) {
      uint64_t seed = 0;
      for (; seed < seeds; seed++) {
        sim::Options o = is_of_bufmgr(sim::Mutation(m))           ? sim::pool_options_of(seed)
                         : is_of_pool_survivors(sim::Mutation(m)) ? sim::pool_survivors_options_of(seed)
                         : is_of_members(sim::Mutation(m))        ? sim::members_options_of(seed)
                         : is_of_survivors(sim::Mutation(m))      ? sim::survivors_options_of(seed)
                                                                  : sim::options_of(seed);
        o.mutation = sim::Mutation(m);
        o.checkers = sim::only(sim::Checker(c));
        if (sim::Checker(c) != sim::Checker::kFence && !is_of_survivors(sim::Mutation(m))) o.crash_node = -1;
        if (sim::run(o).failed) break;
      }
      if (seed < seeds) printf("  %s@%lu", sim::checker_name(sim::Checker(c)), seed);
      fflush(stdout);
    }
    printf("\n");
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const bool pool = count > 1 && strcmp(words[1], "--pool") == 0;
  const bool survivors = count > 1 + pool && strcmp(words[1 + pool], "--survivors") == 0;
  if ((count == 5 || count == 6) && strcmp(words[1], "--members") == 0 && strcmp(words[2], "--seeds") == 0)
    return many(strtoull(words[3], nullptr, 0), strtoull(words[4], nullptr, 0), sim::members_options_of,
                count == 6 ? sim::mutation_of(words[5]) : sim::Mutation::kNone);
  const int kind = pool + survivors;
  if (count == 4 + kind && strcmp(words[1 + kind], "--seeds") == 0)
    return many(strtoull(words[2 + kind], nullptr, 0), strtoull(words[3 + kind], nullptr, 0),
                pool && survivors ? sim::pool_survivors_options_of
                : pool            ? sim::pool_options_of
                : survivors       ? sim::survivors_options_of
                                  : sim::options_of);
  if ((count == 3 || count == 4) && strcmp(words[1], "--mutations") == 0)
    return mutations(strtoull(words[2], nullptr, 0), count == 4 ? sim::mutation_of(words[3]) : sim::Mutation::kCount);
  sim::Options o;
  if (count > 1 && sim::parse(count - 1, words + 1, &o)) return one(o);
  fprintf(stderr,
          "usage: sim [--pool] [--survivors] --seed N [--nodes N ...] [--mutation NAME] [--trace]\n       sim [--pool] "
          "[--survivors] --seeds FROM "
          "TO\n       sim --members --seeds FROM TO [MUTATION]\n       sim --mutations SEEDS [NAME]\n");
  return 2;
}
