// A few small cells: the same twice, every protocol coherent (protocol.hpp, Truth), and what must not get lost.
#include <gtest/gtest.h>

#include "bench/paper/cell.hpp"

namespace paper {
namespace {

using Cluster = Setup;  // in a TEST the word is Google's

Cluster small(int reads, int repeat) {
  Cluster setup;
  setup.work.nodes = 4;
  setup.work.threads = 4;
  setup.work.pages_per_node = 600;
  setup.work.reads = reads;
  setup.work.repeat = repeat;
  setup.frames = 128;
  return setup;
}

Result run(const std::string& protocol, const Cluster& setup, uint64_t measured = 200) {
  const Result r = run_cell({.protocol = protocol, .warm_up = 200, .measured = measured}, setup);
  EXPECT_TRUE(r.ended) << protocol;
  return r;
}

// Small caches, hot pages, many writes: every section sees the last write, or the run aborts.
TEST(PaperCells, AreTheSameTwiceAndCoherent) {
  for (const char* protocol : {"selcc", "sel", "directory", "gam", "gam-tso"}) {
    Cluster setup = small(50, 20);
    setup.work.theta = 0.99;
    const Result first = run(protocol, setup), second = run(protocol, setup);
    EXPECT_EQ(first.hash, second.hash) << protocol;
    EXPECT_EQ(first.mops, second.mops) << protocol;
    setup.work.seed = 2;
    EXPECT_NE(run(protocol, setup).hash, first.hash) << protocol;
  }
}

// Many nodes on few pages, readers among writers: where chains of owners and upgrades meet.
TEST(PaperCells, AreCoherentWhereOwnersAndSharersMeet) {
  for (const char* protocol : {"selcc", "directory", "gam", "gam-tso"})
    for (uint64_t seed = 1; seed <= 3; seed++)
      for (const int reads : {95, 70}) {
        Cluster setup = small(reads, 0);
        setup.work.nodes = setup.work.threads = 8;
        setup.work.pages_per_node = 100;
        setup.work.theta = 0.99;
        setup.work.seed = seed;
        setup.frames = 200;
        run(protocol, setup);
      }
}

TEST(PaperCells, SelIsAsFastAsThePapers) {
  Cluster setup = small(0, 50);
  setup.work.nodes = setup.work.threads = 8;
  EXPECT_NEAR(run("sel", setup).mops, 7.11 / 1.71, 0.25 * 7.11 / 1.71);
}

TEST(PaperCells, LocalityPaysOverSel) {
  for (const int reads : {95, 50, 0}) {
    const Cluster setup = small(reads, 50);
    EXPECT_GT(run("selcc", setup).mops, 1.2 * run("sel", setup).mops) << reads;
  }
}

TEST(PaperCells, RemoteProcessorsConcernTheDirectoryOnly) {
  Cluster setup = small(95, 50);
  setup.work.threads = 8;
  const double one = run("directory", setup).mops, selcc = run("selcc", setup).mops;
  setup.stranded = true;
  EXPECT_LT(run("directory", setup).mops, 0.2 * one);
  EXPECT_EQ(run("selcc", setup).mops, selcc);
  EXPECT_GT(selcc, one);
}

// A thread that stores does not wait, and one that only reads sees no difference.
TEST(PaperCells, TotalStoreOrderTakesTheWaitFromStores) {
  Cluster setup = small(0, 0);
  setup.remote_cores = 8;
  setup.work.threads = 1;
  EXPECT_GT(run("gam-tso", setup).mops, 1.5 * run("gam", setup).mops);
  setup.work.reads = 100;
  EXPECT_EQ(run("gam-tso", setup).mops, run("gam", setup).mops);
}

// One write to pages that seven others share, again and again: two attempts and a round of messages, not seven.
TEST(PaperCells, RequestsOfOneMomentFlySideBySide) {
  Cluster setup = small(0, 0);
  setup.work.nodes = 8;
  setup.work.threads = 1;
  setup.work.pages_per_node = 100;
  setup.work.single_writer = true;
  setup.frames = 1'000;
  const Result r = run_cell({.warm_up = 2'000, .measured = 4'000}, setup);
  const double us = 8 * 4'000 / r.mops;
  EXPECT_LT(us / double(r.by_node[0]), 100);
}

// Eight nodes at one page most of the time: a claim is for writers among readers, a hint for chains of writers.
TEST(PaperCells, AHotPageIsClaimedOnceAndFollowed) {
  const auto mops = [](int reads, const char* off) {
    Cluster setup = small(reads, 0);
    setup.work.nodes = setup.work.threads = 8;
    setup.work.theta = 0.99;
    setup.off = off;
    return run("selcc", setup).mops;
  };
  EXPECT_GT(mops(95, ""), 1.15 * mops(95, "-claim"));
  EXPECT_GT(mops(0, ""), 1.15 * mops(0, "-hints"));
}

// One thread writes, and seven on other nodes, which have just lost the page to it, come back: with one message instead
// of a look at the word and a message.
TEST(PaperCells, ANodeThatLostAPageToAWriterAsksThatWriterFirst) {
  const auto result = [](const char* off) {
    Cluster setup = small(0, 0);
    setup.work.nodes = 8;
    setup.work.threads = 1;
    setup.work.theta = 10;
    setup.work.single_writer = true;
    setup.off = off;
    return run("selcc", setup, 4'000);
  };
  const Result joins = result(""), looks = result("-join");
  EXPECT_LT(joins.round_trips, 0.95 * looks.round_trips);
  EXPECT_GT(joins.mops, 1.05 * looks.mops);
}

// A few pages that all write: a requester that is refused again and again must not nap meanwhile, as it may have the
// very claim that the others wait for, and comes too late each time.
TEST(PaperCells, NobodyStarvesForHavingBeenRefused) {
  for (const auto& [reads, seed] : {std::pair(0, 4), {0, 6}, {20, 6}}) {
    Cluster setup = small(reads, 0);
    setup.work.nodes = setup.work.threads = 8;
    setup.work.pages_per_node = 100;
    setup.work.theta = 1.5;
    setup.work.seed = uint64_t(seed);
    setup.frames = 300;
    EXPECT_GT(run("selcc", setup, 1'000).slowest, 0.7) << reads << " " << seed;
  }
}

// Many nodes at a few hot pages, more of them than a line parks: together they do at least what eight do.
TEST(PaperCells, ThirtyTwoNodesAreNoSlowerThanEight) {
  const auto mops = [](int nodes) {
    Cluster setup = small(50, 0);
    setup.work.nodes = nodes;
    setup.work.threads = 2;
    setup.work.theta = 0.99;
    return run("selcc", setup).mops;
  };
  EXPECT_GT(mops(32), mops(8));
}

// At a cost of at most 15 % of the rate when no node gives the page away.
TEST(PaperCells, GammaBoundsWhatANodeMayKeep) {
  Cluster setup = small(0, 0);
  setup.work.theta = 10;
  setup.gamma = 256;
  const Result leased = run("selcc", setup, 8'000);
  setup.gamma = ~0u;
  const Result kept = run("selcc", setup, 8'000);
  EXPECT_GE(leased.slowest, 0.8);
  EXPECT_LT(kept.slowest, 0.5);
  EXPECT_GE(leased.mops, 0.85 * kept.mops);
}

}  // namespace
}  // namespace paper
