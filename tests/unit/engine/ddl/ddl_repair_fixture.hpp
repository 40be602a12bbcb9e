// Nodes that die, those that live, and the participants of their DDL: for the tests of DdlRepair.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "extension/engine/ddl/ddl_repair.hpp"
#include "tests/support/eventually.hpp"
#include "tests/unit/engine/ddl/ddl_node.hpp"

namespace gcl_test {

using coherence::NodeId;
using coherence::NodeSet;
using engine::DdlHeader;
using engine::DdlHolder;
using engine::DdlKind;
using engine::DdlOutcome;
using engine::DdlRepair;

inline constexpr uint64_t kTxn = 4711;

class Host final : public engine::DdlRepairHost {
 public:
  DdlOutcome outcome(uint64_t txn) noexcept override {
    EXPECT_EQ(txn, kTxn);
    return said;
  }
  void posted(int, NodeSet to) noexcept override {
    ++posts;
    last_to = to;
  }
  void freed() noexcept override { ++wakes; }
  DdlOutcome said = DdlOutcome::kRolledBack;
  int posts = 0, wakes = 0;
  NodeSet last_to;
};

// What an apply worker does, in one slot.
class Participant {
 public:
  Participant(engine::DdlChannel& channel, NodeId self) : channel_(channel), self_(self) {}
  // True: there was a message.
  bool serve(int slot) {
    engine::DdlSlot at = channel_.slot(slot);
    const uint64_t newest = at.sequence();
    DdlHeader header;
    if (newest <= at.acknowledged() || !at.read(newest, &header)) return false;
    if (header.to.has(self_)) deal_with(header);
    (void)at.acknowledge(newest, true, {});
    return true;
  }
  bool open() const { return open_ != 0; }
  int commits = 0, rollbacks = 0;

 private:
  void deal_with(const DdlHeader& header) {
    if (header.kind != DdlKind::kCommit && header.kind != DdlKind::kAbort) {
      open_ = header.transaction;
      return;
    }
    if (open_ == header.transaction)
      ++(header.kind == DdlKind::kCommit ? commits : rollbacks);
    else
      EXPECT_NE(header.kind, DdlKind::kCommit) << "a transaction that is not open here has committed";
    open_ = 0;
  }
  engine::DdlChannel& channel_;
  NodeId self_;
  uint64_t open_ = 0;
};

// A coordinator's slot and lock, as pg/ddl has them.
struct Coordinator {
  Coordinator(engine::DdlChannel& on, DdlHolder who, int number = 0)
      : channel(on), me(who), slot(on.slot(number)), lock(on.locks().lock_of("postgres")) {}
  bool begin() {
    DdlHolder other;
    return channel.locks().try_lock(lock, me, 1, &other) && slot.take(me, 1);
  }
  void post(DdlKind kind) {
    if (first == 0) first = slot.sequence() + 1;
    DdlHeader header{};
    header.kind = kind;
    header.transaction = first;
    header.to = channel.members().nodes;
    header.coordinator = me.node().value;
    header.holder = me;
    header.lock = uint8_t(lock);
    std::strcpy(header.database, "postgres");
    slot.post(header, nullptr);
  }
  void end() {
    channel.locks().unlock(lock, me);
    slot.give_up(me);
  }
  engine::DdlChannel& channel;
  DdlHolder me;
  engine::DdlSlot slot;
  int lock;
  uint64_t first = 0;
};

class DdlRepairTest : public testing::Test {
 protected:
  DdlRepairTest() : cluster_({.nodes = 3, .repairs_deaths = true}) {
    for (int n = 0; n < 3; ++n) start(n);
  }
  void start(int n) {
    nodes_[n].emplace(cluster_, n);
    nodes_[n]->channel.join(uint64_t(100 + n));
  }
  void die(int n) {
    nodes_[n].reset();
    cluster_.kill(n);
  }
  // Until a survivor may take over from it.
  void await_repairable(int n) {
    ASSERT_TRUE(gcl_test::eventually([&] { return home(0).repairable().has(id(n)); }));
  }
  void comes_back(int n) {
    ASSERT_TRUE(gcl_test::eventually([&] { return home(0).swept(id(n), home(0).info(id(n)).incarnation); }));
    ASSERT_TRUE(gcl_test::eventually([&] { return home(0).info(id(n)).state == coherence::MemberState::kAbsent; }));
    cluster_.start(n);
    nodes_[n].emplace(cluster_, n);
  }
  static NodeId id(int n) { return {uint8_t(n)}; }
  coherence::Node& home(int n) { return cluster_.pool(n).coherence_node(); }
  engine::DdlChannel& channel(int n) { return nodes_[n]->channel; }
  DdlRepair repair(int n, Host& host) { return {channel(n), home(n).incarnation(), host}; }
  DdlHolder holder_of_lock() { return {channel(0).locks().words(channel(0).locks().lock_of("postgres")).holder}; }
  // Has node 2 do as told, and die.
  template <class Does>
  void coordinate(Does does) {
    Coordinator coordinator(channel(2), nodes_[2]->me);
    does(coordinator);
    die(2);
    await_repairable(2);
  }

  // The same, when all have done its last statement, and nobody can tell whether it has committed.
  void die_in_doubt() {
    coordinate([](Coordinator& it) {
      ASSERT_TRUE(it.begin());
      it.slot.set_txn(kTxn);
      it.post(DdlKind::kLast);
    });
    for (int n : {0, 1}) (void)channel(n).slot(0).acknowledge(1, true, {});
    host_.said = DdlOutcome::kUndecided;
  }

  gcl_test::Cluster cluster_;
  std::optional<Node> nodes_[3];
  Host host_, other_host_;
};

}  // namespace gcl_test
