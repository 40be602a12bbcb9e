// A batch of the engine's own that may or may not have taken place: its node is cut off, whichever it was, the pool is
// fenced with the reason, and nobody is told of a success (transport.unknown-cuts-off, ddl_log.lost-says-no).
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "extension/engine/reclaim/reclaimer.hpp"
#include "extension/engine/samples/sample_registry.hpp"
#include "extension/engine/waitgraph/deadlock_detector.hpp"
#include "tests/support/breaking_transport.hpp"
#include "tests/unit/engine/ddl/ddl_node.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace {

using namespace engine_test;
using coherence::Errc;
using coherence::NodeId;
using engine::DdlHolder;
using engine::DdlReply;

class UnknownOutcomeThere : public ::testing::TestWithParam<bool> {
 protected:
  UnknownOutcomeThere() { transport_.took_place = GetParam(); }
  gcl_test::ClusterOptions options() {
    return {.nodes = 2, .frames = 128, .pool_bytes = 16 << 20, .transport = &transport_};
  }
  static void expect_fenced(gcl_test::Cluster& cluster) {
    ASSERT_TRUE(cluster.pool(1).fenced());
    EXPECT_STREQ(cluster.pool(1).coherence_node().fence_reason(),
                 "node 0 lost a memory node in the middle of an operation");
  }
  gcl_test::BreakingTransport transport_;
};

// Of whichever of its batches: no other node believes in a commit that its own session was not told of, and none in an
// abort, for none asks any more.
TEST_P(UnknownOutcomeThere, OfACommit) {
  for (int batch = 0; batch < 2; ++batch) {
    transport_.heal();
    Engine engine({.cluster = options(), .tickers = false});
    Worker mine(engine, 0), other(engine, 1);
    const auto id = mine->id_for_write();
    ASSERT_TRUE(id.ok());
    ASSERT_TRUE(mine->prepare().ok());
    transport_.break_after(batch);
    EXPECT_EQ(mine->commit().error(), Errc::kFenced) << "batch " << batch;
    expect_fenced(engine.cluster());
    EXPECT_EQ(other->status(*id).error(), Errc::kFenced);
  }
}

TEST_P(UnknownOutcomeThere, OfWhatATransactionSystemAsks) {
  const std::vector<std::pair<const char*, std::function<coherence::Errc(Worker&)>>> all = {
      {"a moment", [](Worker& w) { return w->pass_moment().error(); }},
      {"a snapshot", [](Worker& w) { return w->take_snapshot().error(); }},
      {"an id", [](Worker& w) { return w->id_for_write().error(); }},
      {"the aborted list", [](Worker& w) { return w->aborted_pages().error(); }},
      {"the horizon", [](Worker& w) { return w->refresh_horizon().error(); }},
      {"truncation", [](Worker& w) { return w->truncate_log_now().error(); }},
      {"a session lock", [](Worker& w) { return w->take_session_lock().error(); }},
      {"reclaiming", [](Worker& w) { return engine::Reclaimer::due_anywhere(w.txns()).error(); }},
  };
  for (const auto& [what, ask] : all) {
    transport_.heal();
    Engine engine({.cluster = options(), .tickers = false});
    {
      Worker before(engine, 0);
      ASSERT_TRUE(before->id_for_write().ok());
      before.commit();
    }
    Worker worker(engine, 0);
    transport_.break_after(0);
    EXPECT_EQ(ask(worker), Errc::kFenced) << what;
    expect_fenced(engine.cluster());
  }
}

TEST_P(UnknownOutcomeThere, OfAWaitTable) {
  gcl_test::Cluster cluster(options());
  auto mine = cluster.session(0), peers = cluster.session(1);
  const auto registry_of = [&](bufmgr::Session& session, int n) {
    return engine::WaitRegistry(session.memory(), cluster.pool(n).region(bufmgr::Region::kWaits),
                                cluster.pool(n).nodes_max(), {uint8_t(n)}, 1);
  };
  engine::WaitRegistry one = registry_of(*mine, 0), two = registry_of(*peers, 1);
  const uint64_t ticket = *one.ask();
  two.publish(two.asked()->ticket, std::vector<engine::WaitRecord>(3), 0);
  std::vector<engine::WaitRecord> seen;
  ASSERT_TRUE(one.read({1}, ticket, &seen));
  ASSERT_EQ(seen.size(), 3u);
  transport_.break_after(1);  // behind the head, before the records
  EXPECT_FALSE(one.read({1}, ticket, &seen));
  EXPECT_EQ(seen.size(), 3u) << "what was not read is not told";
  EXPECT_EQ(one.ask().error(), Errc::kFenced);
  EXPECT_EQ(one.asked().error(), Errc::kFenced);
  engine::DeadlockDetector detector(one, {0});
  bool asked = false;
  detector.start(1, &asked);
  EXPECT_FALSE(asked);
  EXPECT_FALSE(detector.busy()) << "nobody answers what was perhaps not asked";
  one.publish(ticket + 1, {}, 0);
  one.clear();
  expect_fenced(cluster);
}

TEST_P(UnknownOutcomeThere, OfASample) {
  Engine engine({.cluster = options(), .tickers = false});
  Worker one(engine, 0), two(engine, 1);
  const auto registry_of = [](Worker& worker, int node) {
    auto& pool = worker.txns().pool();
    return engine::SampleRegistry(worker.session().memory(), pool.region(bufmgr::Region::kSamples), pool.nodes_max(),
                                  NodeId{uint8_t(node)});
  };
  engine::SampleRegistry mine = registry_of(one, 0), theirs = registry_of(two, 1);
  engine::Sample said, seen;
  said.incarnation = 7;
  theirs.publish(said);
  ASSERT_TRUE(mine.read({1}, 7, &seen));
  transport_.break_after(0);
  EXPECT_FALSE(mine.read({1}, 7, &seen));
  mine.publish(said);
  mine.clear();
  expect_fenced(engine.cluster());
}

// Whichever of its batches breaks: what the channel says lets nobody go on.
TEST_P(UnknownOutcomeThere, OfADdlExchange) {
  using gcl_test::Node;
  const std::vector<std::pair<const char*, std::function<bool(Node&, Node&)>>> yes = {
      {"has a database's lock",
       [](Node& a, Node&) {
         DdlHolder other;
         return a.channel.locks().try_lock(a.channel.locks().lock_of("postgres"), a.me, 1, &other);
       }},
      {"has the whole cluster's lock",
       [](Node& a, Node&) {
         DdlHolder other;
         return a.channel.locks().try_lock(engine::DdlLocks::kWholeCluster, a.me, 1, &other);
       }},
      {"has a slot", [](Node& a, Node&) { return a.channel.slot(0).take(a.me, 1); }},
      {"all have dealt with it", [](Node& a, Node&) { return a.channel.slot(0).all_have_dealt(); }},
      {"has its message",
       [](Node& a, Node&) {
         engine::DdlHeader header;
         const uint64_t newest = a.channel.slot(0).sequence();
         return newest != 0 && a.channel.slot(0).read(newest, &header);
       }},
      {"was the last to answer", [](Node& a, Node&) { return a.channel.slot(0).acknowledge(1, true, "").valid(); }},
      {"was answered",
       [](Node& a, Node& b) { return a.channel.slot(0).reply_of(b.pool.node(), 1, 1) != DdlReply::kPending; }},
      {"knows what is granted",
       [](Node& a, Node&) {
         engine::DdlGranted granted;
         return a.channel.slot(0).read_granted(&granted);
       }},
      {"is alone", [](Node& a, Node&) { return a.channel.members().nodes.empty(); }},
      {"knows that the other is away", [](Node& a, Node& b) { return a.channel.membership(b.pool.node()) == 0; }},
      {"nobody waits", [](Node& a, Node&) { return a.channel.locks().take_wanted().any(); }},
      {"had locks", [](Node& a, Node&) { return a.channel.locks().unlock_all(a.me); }},
      {"knows the log's begin", [](Node& a, Node&) { return a.channel.log_root().ok(); }},
      {"has made the log", [](Node& a, Node&) { return a.channel.set_log_root(coherence::PageId{5}); }},
      {"has written an entry",
       [](Node& a, Node&) {
         const std::byte record[8]{};
         return a.log.append(record, 1).ok();
       }},
  };
  for (const auto& [what, ask] : yes) {
    bool said_no = false;
    for (int batch = 0; batch < 4; ++batch) {
      transport_.heal();
      gcl_test::Cluster cluster(options());
      Node a(cluster, 0), b(cluster, 1);
      transport_.break_after(batch);
      const bool said = ask(a, b), fenced = cluster.pool(1).fenced();
      EXPECT_FALSE(said && fenced) << what << ", batch " << batch;
      said_no |= fenced;
      EXPECT_FALSE(fenced && ask(a, b)) << what << ", asked again";
      if (!fenced) {  // it has no more batches, and the next one, of a node that leaves, is not to break
        transport_.heal();
        break;
      }
      expect_fenced(cluster);
    }
    EXPECT_TRUE(said_no) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(TookPlace, UnknownOutcomeThere, ::testing::Bool());

}  // namespace
