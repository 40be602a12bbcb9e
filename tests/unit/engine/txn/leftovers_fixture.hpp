// A node that works, and dies as far as its transactions are concerned; a survivor; a server that comes back.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

inline constexpr uint64_t kXid = 4711;

// A server whose commit log has the transactions that a test says.
struct HostOfDead final : HostCommits {
  explicit HostOfDead(bool commits) : commits(commits) {}
  coherence::Result<bool> committed(uint64_t host_xid) override {
    asked.push_back(host_xid);
    if (when_asked) when_asked();
    return commits;
  }
  bool was_decided(uint64_t host_xid, bool committed) override {
    told.emplace_back(host_xid, committed);
    return hears;
  }
  bool commits, hears = true;
  std::function<void()> when_asked;
  std::vector<uint64_t> asked;
  using Told = std::vector<std::pair<uint64_t, bool>>;
  Told told;
};

inline TxnState state_of(Worker& reader, TxnId id) {
  auto owner = reader->owner(id);
  EXPECT_TRUE(owner.ok());
  return owner ? owner->state : TxnState::kUnused;
}

// Dies before a status is there.
inline void let_commit_begin(Worker& writer) {
  const TxnId id = writer->current().top();
  const auto prepared = StatusWord::prepared(writer.session().id(), id);
  const auto committing = StatusWord::committing(writer.session().id(), id);
  EXPECT_EQ(*writer.session().memory().cas(writer->words().status(id), prepared.raw, committing.raw), prepared.raw);
}

// Node 0 works, and dies as far as its transactions are concerned; node 1 is a survivor.
class LeftByDead : public ::testing::Test {
 protected:
  explicit LeftByDead(uint32_t slots_max = ~0u)
      : engine_({.cluster = {.nodes = 2}, .slots_max = slots_max}),
        survivor_(std::make_unique<Worker>(engine_, 1)),
        victim_(std::make_unique<Worker>(engine_, 0)) {}
  Leftovers::Ended end(HostCommits* host = nullptr) {
    return end([] { return true; }, host);
  }
  Leftovers::Ended end(const std::function<bool()>& still_dead, HostCommits* host = nullptr) {
    auto ended = Leftovers(survivor_->session().memory(), (*survivor_)->words(), {0}).end(still_dead, host);
    EXPECT_TRUE(ended.ok());
    return ended ? *ended : Leftovers::Ended{};
  }
  coherence::Result<bool> decide(TxnId id, bool commit) {
    const auto decided = Leftovers(survivor_->session().memory(), (*survivor_)->words(), {0}).decide(id, commit);
    if (!decided) return decided.error();
    watchers_ = decided->watchers;
    return decided->committed;
  }
  void die() {
    engine_.pause_ticker(0);
    victim_->vanish();
  }
  TxnState state(TxnId id) { return state_of(*survivor_, id); }

  Engine engine_;
  coherence::NodeSet watchers_;
  std::unique_ptr<Worker> survivor_, victim_;
};

}  // namespace engine_test
