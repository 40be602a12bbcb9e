// What a transport brings to the tests of the Membership contract: a pool, and processes that may become its nodes; and
// the fixture of those tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "coherence/member/membership.hpp"
#include "coherence/pool/pool.hpp"
#include "tests/support/eventually.hpp"

namespace conformance {

using namespace coherence;  // NOLINT: the tests speak of nothing else

// Once in its life it may become a node.
class Candidate {
 public:
  virtual ~Candidate() = default;  // a node that is in the pool ends as in die()
  virtual Membership& members() = 0;
  // Membership::publish(), with a file that all processes of the node would have.
  virtual Status publish(NodeId, uint64_t incarnation, Problem*) = 0;
  // All of its processes end, and have not left.  REQUIRES: it is in the pool.
  virtual void die() = 0;
  // Nothing of what others do reaches it, and nothing that it says goes out, until go_on().  A transport whose looks
  // are at the table itself holds up nothing.
  virtual void hold() {}
  virtual void go_on() {}

  NodeId id;
  uint64_t incarnation = 0;
};

// Ends after its candidates.
class MembersPool {
 public:
  virtual ~MembersPool() = default;
  virtual std::unique_ptr<Candidate> candidate() = 0;
};

struct MembersKind {
  const char* name;
  // A process that is killed without a word has ended for the others when so much time is over, or sooner.
  std::unique_ptr<MembersPool> (*make)(const PoolSpec&, uint64_t patience_ns);
  bool cuts_off_alone;  // it can end one incarnation alone (Membership::cut_off())
  bool of_processes;    // candidates may be made, and members inherited, by processes that are forked
};
inline std::ostream& operator<<(std::ostream& o, const MembersKind& kind) { return o << kind.name; }

// More than any process needs, however slow the machine is; and less, where nothing depends on being in time.
inline constexpr uint64_t kLongNs = 120'000'000'000, kShortNs = 300'000'000;

// All of them: a new transport is added in member_pools.cpp.  Those whose nodes are processes.
const std::vector<MembersKind>& members_kinds();
std::vector<MembersKind> members_kinds_of_processes();

class MembersContract : public testing::TestWithParam<MembersKind> {
 protected:
  static constexpr uint8_t kNodesMax = 5;
  static constexpr auto kWait = Membership::Patience::kWait, kTry = Membership::Patience::kTry;

  void SetUp() override { make({.repairs_deaths = true}); }
  void make(PoolSpec spec, uint64_t patience_ns = kLongNs) {
    nodes_.clear();
    pool_.reset();
    spec.nodes_max = kNodesMax;
    spec.compatibility = "";
    spec.region_bytes[kRegionPages] = 16 * kPageSize;
    pool_ = GetParam().make(spec, patience_ns);
  }
  std::unique_ptr<Candidate> candidate() { return pool_->candidate(); }

  // As Node::join() and Node::leave() do it.
  Status begin(Candidate& node) { return node.members().begin_change(kWait, &problem); }
  Status reserve(Candidate& node, uint8_t id) {
    const auto reserved = node.members().reserve(NodeId{id}, &problem);
    if (!reserved) return reserved.error();
    node.id = NodeId{id};
    node.incarnation = *reserved;
    return {};
  }
  Status join(Candidate& node, uint8_t id) {
    GCL_TRY(begin(node));
    Status done = reserve(node, id);
    if (done) done = node.publish(node.id, node.incarnation, &problem);
    node.members().end_change();
    return done;
  }
  // One that is in the pool; it lives as long as the test.
  Candidate& join(uint8_t id) {
    nodes_.push_back(candidate());
    EXPECT_TRUE(join(*nodes_.back(), id).ok()) << problem.text;
    return *nodes_.back();
  }
  // Whether the pool is empty then.
  bool leave(Candidate& node) {
    node.members().begin_leaving();
    EXPECT_TRUE(begin(node).ok()) << problem.text;
    const auto empty = node.members().withdraw(&problem);
    EXPECT_TRUE(empty.ok()) << problem.text;
    if (empty && *empty) {
      EXPECT_TRUE(node.members().close(&problem).ok()) << problem.text;
    }
    node.members().end_change();
    return empty && *empty;
  }

  // What a node sees of another one.
  static NodeInfo look(Candidate& by, const Candidate& at) { return by.members().info(at.id); }
  static MemberState state(Candidate& by, const Candidate& at) { return look(by, at).state; }
  static bool is(Candidate& by, const Candidate& at, MemberState state) {
    const NodeInfo seen = look(by, at);
    return seen.state == state && seen.incarnation == at.incarnation;
  }
  bool comes_to_be(Candidate& by, const Candidate& at, MemberState state) {
    return gcl_test::eventually([&] {
      (void)by.members().watch(++now_);
      return is(by, at, state);
    });
  }
  bool all_see(std::initializer_list<Candidate*> nodes, const Candidate& at, MemberState state) {
    bool all = true;
    for (Candidate* by : nodes) all &= comes_to_be(*by, at, state);
    return all;
  }

  // A step of a repair, which is said until it is heard: of the node's incarnation that `dead` was.
  static bool recorded(Candidate& by, const Candidate& dead) {
    return gcl_test::eventually([&] { return by.members().recorded(dead.id, dead.incarnation); });
  }
  static bool quiesced(Candidate& by, const Candidate& dead) {
    return gcl_test::eventually([&] { return by.members().quiesced(dead.id); });
  }
  static bool swept(Candidate& by, const Candidate& dead) {
    return gcl_test::eventually([&] { return by.members().swept(dead.id, dead.incarnation); });
  }
  static bool drained(Candidate& by, const Candidate& dead) {
    return gcl_test::eventually([&] { return by.members().drained(dead.id); });
  }
  // All steps, by all of these, which are those that serve.
  bool repair(std::initializer_list<Candidate*> survivors, const Candidate& dead) {
    if (!all_see(survivors, dead, MemberState::kDead)) return false;
    const auto all = [&](auto step) {
      return gcl_test::eventually([&] {
        bool done = true;
        for (Candidate* by : survivors) done &= step(by->members());
        return done;
      });
    };
    return all([&](Membership& m) { return m.quiesced(dead.id); }) && swept(**survivors.begin(), dead) &&
           all_see(survivors, dead, MemberState::kSwept) && all([&](Membership& m) { return m.drained(dead.id); }) &&
           all_see(survivors, dead, MemberState::kAbsent);
  }

  // Whether it holds all the while, which says little where nothing is wrong, and much where something is.
  template <class Condition>
  static bool stays(const Condition& condition) {
    return !gcl_test::eventually([&] { return !condition(); }, std::chrono::milliseconds(200));
  }

  Problem problem;

 private:
  std::unique_ptr<MembersPool> pool_;
  std::vector<std::unique_ptr<Candidate>> nodes_;
  uint64_t now_ = 0;
};

// Of transports whose nodes are processes.
class MembersOfProcesses : public MembersContract {};

}  // namespace conformance
