// Each kind of concurrency control on each store: every history has a serial order, and the same seed the same figures.
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/txn/cell.hpp"

namespace txn {
namespace {

CellSpec small(const char* control, const char* store, const char* kind) {
  CellSpec spec;
  spec.control = control;
  spec.store = store;
  spec.tries = 4;
  spec.work.kind = kind;
  spec.work.nodes = spec.work.threads = 4;
  spec.work.warehouses = 4;
  spec.work.items = 300;
  spec.work.customers = 30;
  spec.work.pages = std::string(control) == "2pl" ? 200 : 8;  // as hot, by what is locked
  spec.work.steps = 4;
  spec.work.theta = 0.6;
  spec.work.reads = 70;
  spec.work.own_warehouses = std::string(store) == "partitioned";
  spec.frames = 200;  // pages leave the cache, too
  spec.warm_up = 0;
  spec.measured = 60;
  spec.keep_history = true;
  return spec;
}

using Kind = std::tuple<const char*, const char*, const char*>;
class Transactions : public testing::TestWithParam<Kind> {};

TEST_P(Transactions, HaveASerialOrder) {
  const auto& [control, store, kind] = GetParam();
  for (uint64_t seed = 1; seed <= 2; seed++) {
    CellSpec spec = small(control, store, kind);
    spec.work.seed = seed;
    const Result r = run_cell(spec);
    ASSERT_TRUE(r.ended);
    EXPECT_GE(r.history.size(), 960u);
    EXPECT_GT(r.aborts, 0) << "they met";
    std::string why;
    EXPECT_TRUE(is_serializable(r.history, &why)) << why;
    if (seed == 1) {
      EXPECT_EQ(run_cell(spec).hash, r.hash);
    }
  }
}

std::string name_of(const testing::TestParamInfo<Kind>& one) {
  std::string name = std::string(std::get<0>(one.param)) + "_" + std::get<1>(one.param) + "_" + std::get<2>(one.param);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Transactions,
                         testing::Values(Kind{"2pl", "selcc", "tpcc"}, Kind{"to", "selcc", "tpcc"},
                                         Kind{"occ", "selcc", "tpcc"}, Kind{"2pl", "sel", "tpcc"},
                                         Kind{"to", "sel", "tpcc"}, Kind{"occ", "sel", "tpcc"},
                                         Kind{"2pl", "selcc", "ycsb"}, Kind{"to", "selcc", "ycsb"},
                                         Kind{"occ", "selcc", "ycsb"}, Kind{"2pl", "sel", "ycsb"},
                                         Kind{"2pl", "partitioned", "tpcc"}, Kind{"page-holds", "selcc", "tpcc"},
                                         Kind{"row-holds", "selcc", "tpcc"}, Kind{"validation", "selcc", "tpcc"},
                                         Kind{"row-holds", "selcc", "sibench"}, Kind{"validation", "selcc", "sibench"},
                                         Kind{"row-holds", "selcc", "skew"}, Kind{"validation", "selcc", "skew"}),
                         name_of);

// The paper's section 7.3, as far as this model bears it out (README.md).
double ktps(const char* store, const char* control, int payments, int reads = -1) {
  CellSpec spec;
  spec.store = store;
  spec.control = control;
  spec.work.payments = payments;
  spec.work.own_warehouses = false;
  if (reads >= 0) spec.work.kind = "ycsb", spec.work.reads = reads, spec.work.theta = 0.9;
  spec.frames = 6'000;
  spec.warm_up = spec.measured = 40;
  const Result r = run_cell(spec);
  EXPECT_TRUE(r.ended);
  return r.ktps;
}

TEST(TransactionShapes, ACacheIsWorthSomeTimesOfNone) {
  EXPECT_GT(ktps("selcc", "2pl", 0), 2.5 * ktps("sel", "2pl", 0));
  EXPECT_GT(ktps("selcc", "to", 0), 2.5 * ktps("sel", "to", 0));
  EXPECT_GT(ktps("selcc", "occ", 0), 1.5 * ktps("sel", "occ", 0));
}

TEST(TransactionShapes, ReadsAreDearToTimestampOrderingAlone) {
  const double locking = ktps("selcc", "2pl", 0, 100);
  EXPECT_LT(ktps("selcc", "to", 0, 100), locking / 3);
  EXPECT_NEAR(ktps("selcc", "occ", 0, 100), locking, locking / 4);
}

TEST(TransactionShapes, AcrossPartitionsTwoPhaseCommitLosesMore) {
  const auto at = [](const char* store, int remote) {
    CellSpec spec;
    spec.store = store;
    spec.work.payments = 0;
    spec.work.remote = remote;
    spec.log_ns = 100'000;
    spec.frames = 6'000;
    spec.warm_up = spec.measured = 40;
    return run_cell(spec).ktps;
  };
  EXPECT_GT(at("selcc", 100), 0.7 * at("selcc", 0));
  EXPECT_LT(at("partitioned", 100), 0.65 * at("partitioned", 0));
}

// What extension/engine/serializable/rationale.md decides by.
TEST(TransactionShapes, BetweenNodesHoldsOfPagesStopRowsThatNeverMeet) {
  const auto at = [](const char* control, int nodes) {
    CellSpec spec;
    spec.control = control;
    spec.work.kind = "hot-insert";
    spec.work.nodes = nodes;
    spec.tries = 40;
    spec.log_ns = 100'000;
    spec.frames = 6'000;
    spec.warm_up = 30, spec.measured = 50;
    return run_cell(spec).ktps;
  };
  EXPECT_GT(at("validation", 8), 1.5 * at("row-holds", 8));
  EXPECT_NEAR(at("validation", 1), at("row-holds", 1), 1);
  EXPECT_GT(at("row-holds", 1), 2 * at("page-holds", 1));
}

// The judge sees what is wrong (tests.seen-to-fail).
constexpr Row kX{1, 0}, kY{2, 0};

TEST(SerialOrder, OfALostUpdate) {
  std::string why;
  EXPECT_FALSE(is_serializable({{{{kX, 0}}, {{kX, 1}}}, {{{kX, 0}}, {{kX, 1}}}}, &why));
  EXPECT_NE(why.find("is lost"), std::string::npos) << why;
}

TEST(SerialOrder, OfAWriteSkew) {
  std::string why;
  EXPECT_FALSE(is_serializable({{{{kX, 0}, {kY, 0}}, {{kX, 1}}}, {{{kX, 0}, {kY, 0}}, {{kY, 1}}}}, &why));
  EXPECT_EQ(why, "2 transactions have no order");
}

TEST(SerialOrder, OfWhatNobodyHasCommitted) {
  std::string why;
  EXPECT_FALSE(is_serializable({{{{kX, 1}}, {}}}, &why));
  EXPECT_NE(why.find("nobody who was committed"), std::string::npos) << why;
}

TEST(SerialOrder, OfOneAfterTheOther) {
  std::string why;
  EXPECT_TRUE(
      is_serializable({{{{kX, 1}, {kY, 0}}, {}}, {{{kX, 0}}, {{kX, 1}}}, {{{kX, 1}, {kY, 0}}, {{kY, 1}}}}, &why))
      << why;
}

}  // namespace
}  // namespace txn
