// A cluster that is stopped, works on, and is lost: its pages are as they were at the end, its words as of the stop.
// Node 0 is the driver's, which no transaction ever runs on.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "coherence/region/pool_header.hpp"
#include "extension/engine/restart/restore.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

// The words of a pool that no process has open.
class SavedWords {
 public:
  explicit SavedWords(const std::string& path) : path_(path) {
    each([](int file, uint64_t at, std::vector<std::byte>& bytes) {
      EXPECT_EQ(pread(file, bytes.data(), bytes.size(), off_t(at)), ssize_t(bytes.size()));
    });
  }
  void put_back() {
    each([](int file, uint64_t at, std::vector<std::byte>& bytes) {
      EXPECT_EQ(pwrite(file, bytes.data(), bytes.size(), off_t(at)), ssize_t(bytes.size()));
    });
  }

 private:
  template <class Do>
  void each(const Do& one) {
    using bufmgr::Region;
    const int file = open(path_.c_str(), O_RDWR);
    auto header = std::make_unique<std::byte[]>(sizeof(coherence::PoolHeader));
    EXPECT_EQ(pread(file, header.get(), sizeof(coherence::PoolHeader), 0), ssize_t(sizeof(coherence::PoolHeader)));
    const auto& of = *reinterpret_cast<const coherence::PoolHeader*>(header.get());
    for (const Region region :
         {Region::kTxnWords, Region::kStatusLog, Region::kDdl, Region::kWaits, Region::kSamples}) {
      const auto& part = of.region[int(region)];
      bytes_[region].resize(part.bytes);
      one(file, part.offset, bytes_[region]);
    }
    close(file);
  }

  std::string path_;
  std::map<bufmgr::Region, std::vector<std::byte>> bytes_;
};

class LostPool : public ::testing::Test {
 protected:
  static constexpr int kDriver = 0, kPrimaries = 2;
  static constexpr uint32_t kSlots = 64;
  static constexpr size_t kOpenAtOnce = 3, kLevels = 4;  // fewer than a quarter of the ring: they may all be pinned
  LostPool()
      : engine_({.cluster = {.nodes = 1 + kPrimaries, .keep_records = true}, .slots_max = kSlots, .tickers = false}) {}

  // --- transactions, and what became of them ------------------------------------------------------------------------
  struct Open {
    Open(Engine& engine, int of_node, uint32_t number) : node(of_node), xid(number), worker(engine, of_node) {
      worker->set_host_xid(xid);
    }
    int node;
    uint32_t xid;
    Worker worker;
    std::vector<std::vector<TxnId>> ids{1};  // by level
  };
  static constexpr int kPrimary[] = {1, 2};
  int any_primary() { return kPrimary[random_() % kPrimaries]; }

  std::unique_ptr<Open> begin(int node) { return std::make_unique<Open>(engine_, node, ++xid_); }
  void write(Open& txn) {
    const auto before = txn.worker->current().top();
    const auto id = txn.worker->id_for_write();
    ASSERT_TRUE(id.ok());
    // Outer levels get theirs first; the test writes at each level before it opens the next.
    if (std::ranges::find(txn.ids.back(), *id) == txn.ids.back().end()) {
      EXPECT_TRUE(highest_[txn.node] < id->sequence()) << "an id is used twice";
      highest_[txn.node] = id->sequence();
      txn.ids.back().push_back(*id);
    }
    EXPECT_TRUE(!before.valid() || before == txn.worker->current().top());
  }
  void open_level(Open& txn) {
    write(txn);
    txn.ids.emplace_back();
    ASSERT_TRUE(txn.worker->sub_begin(int(txn.ids.size())).ok());
    write(txn);
  }
  void close_level(Open& txn, bool keep) {
    const int level = int(txn.ids.size());
    keep ? txn.worker->sub_commit(level) : txn.worker->sub_abort(level);
    const auto ids = std::move(txn.ids.back());
    txn.ids.pop_back();
    if (keep)
      txn.ids.back().insert(txn.ids.back().end(), ids.begin(), ids.end());
    else
      note_end(ids, false);
  }
  void note_end(const std::vector<TxnId>& ids, bool committed) {
    for (const TxnId id : ids) truth_[id] = committed;
  }
  void host_says(const Open& txn, bool committed) {
    events_[txn.node].push_back({engine_.cluster().log(txn.node).noted(), txn.xid, committed});
  }
  void commit(std::unique_ptr<Open> txn) {
    while (txn->ids.size() > 1) close_level(*txn, true);
    ASSERT_TRUE(txn->worker->prepare(txn->xid).ok());
    host_says(*txn, true);
    txn->worker.commit();
    note_end(txn->ids[0], true);
  }
  void roll_back(std::unique_ptr<Open> txn, bool prepared) {
    while (txn->ids.size() > 1) close_level(*txn, false);
    if (prepared) {
      ASSERT_TRUE(txn->worker->prepare(txn->xid).ok());
    }
    txn->worker.abort();
    host_says(*txn, false);
    note_end(txn->ids[0], false);
  }
  // As its process vanishes: it has not committed, unless its words say otherwise.
  void lose(std::unique_ptr<Open> txn) {
    for (const auto& ids : txn->ids) note_end(ids, false);
    txn->worker.vanish();
  }
  // One step of any of them, several at once.
  void step() {
    if (open_.size() < kOpenAtOnce) open_.push_back(begin(any_primary()));
    const size_t which = random_() % open_.size();
    Open& txn = *open_[which];
    switch (random_() % 10) {
      case 0:
      case 1:
      case 2:
        write(txn);
        return;
      case 3:
      case 4:
        if (txn.ids.size() < kLevels) open_level(txn);
        return;
      case 5:
        if (txn.ids.size() > 1) close_level(txn, random_() % 2 != 0);
        return;
      case 6:
        if (random_() % 4 == 0) tick(any_primary());
        return;
      default:
        break;
    }
    if (txn.ids[0].empty()) return;
    auto ends = std::move(open_[which]);
    open_.erase(open_.begin() + ptrdiff_t(which));
    random_() % 3 == 0 ? roll_back(std::move(ends), random_() % 2 == 0) : commit(std::move(ends));
  }
  void work(int steps) {
    for (int i = 0; i < steps && !HasFatalFailure(); ++i) step();
  }
  void end_all() {
    for (auto& txn : open_)
      if (txn->ids[0].empty())
        txn->worker.abort();
      else
        commit(std::move(txn));
    open_.clear();
  }
  void lose_all() {
    for (auto& txn : open_) lose(std::move(txn));
    open_.clear();
  }
  void tick(int node) {
    Worker member(engine_, node);
    EXPECT_TRUE(member->tick().ok());
  }
  // All that ended is frozen.
  void freeze_all() {
    for (int round = 0; round < 3; ++round)
      for (int n = 0; n < engine_.nodes(); ++n) {
        if (!joined_[size_t(n)]) continue;
        Worker member(engine_, n);
        EXPECT_TRUE(member->refresh_horizon().ok());
        EXPECT_TRUE(member->truncate_log_now().ok());
      }
  }
  // Ids that were rolled back up to here are named by nothing.
  void forget(int node) {
    Worker sweeper(engine_, node);
    ASSERT_TRUE(sweeper->aborted_pages().ok());
    const uint64_t upto = sweeper->frozen() / 2;
    ASSERT_TRUE(sweeper->forget_aborted(upto).ok());
    std::erase_if(truth_, [&](const auto& id) {
      return id.first.node().value == node && id.first.sequence() <= upto && !id.second;
    });
  }

  // --- stopping, and starting ---------------------------------------------------------------------------------------
  void stop(int node, bool in_order = true) {
    if (in_order) {
      Worker last(engine_, node);
      last->leave();
    }
    engine_.cluster().stop(node);
  }
  void stop_all(bool in_order = true) {
    for (int n = 0; n < engine_.nodes(); ++n)
      if (joined_[size_t(n)]) stop(n, in_order);
    joined_.assign(joined_.size(), false);
  }
  void start(int node) {
    engine_.cluster().start(node);
    engine_.crash_and_join(node);
    joined_[size_t(node)] = true;
  }
  void start_primaries() {
    for (const int node : kPrimary) start(node);
  }
  // A process of the driver's, in a pool that it is alone in.
  template <class Do>
  void as_driver(const Do& what) {
    engine_.cluster().start(kDriver);
    {
      Worker driver(engine_, kDriver);
      what(driver);
    }
    engine_.cluster().stop(kDriver);
  }

  // All have stopped: this is what the durable copy has.
  void take_copy() {
    words_ = std::make_unique<SavedWords>(engine_.cluster().path());
    as_driver([&](Worker& driver) {
      auto copy = read_copy(driver.txns());
      ASSERT_TRUE(copy.ok());
      copy_ = copy.take();
    });
    words_->put_back();  // the driver read it, and kept nothing
    for (const int node : kPrimary) {
      log_from_[node] = engine_.cluster().log(node).noted();
      std::erase_if(events_[node], [&](const Event& event) { return event.notes_before < log_from_[node]; });
    }
  }
  // What the node's log has, behind the copy.
  CommitEvidence evidence_of(int node) {
    CommitEvidence evidence;
    const auto notes = engine_.cluster().log(node).notes();
    auto event = events_[node].begin();
    for (size_t i = log_from_[node]; i <= notes.size(); ++i) {
      for (; event != events_[node].end() && event->notes_before == i; ++event)
        event->committed ? evidence.host_committed(event->xid) : evidence.host_aborted(event->xid);
      if (i < notes.size()) {
        EXPECT_TRUE(evidence.note(notes[i]).ok());
      }
    }
    EXPECT_EQ(event, events_[node].end());
    return evidence;
  }
  // The pool is lost, and made again, with what is known of these nodes.  REQUIRES: all have stopped.
  std::vector<RestoredNode> restart(const std::map<int, CommitEvidence>& known) {
    words_->put_back();
    std::vector<RestoredNode> nodes;
    as_driver([&](Worker& driver) {
      std::vector<const CommitEvidence*> evidence(driver->words().nodes());
      for (const auto& [node, of] : known) evidence[size_t(node)] = &of;
      auto done = restore(driver->pool(), driver.session(), driver->words(), copy_, evidence);
      ASSERT_TRUE(done.ok()) << coherence::errc_name(done.error());
      nodes = done.take();
    });
    return nodes;
  }
  std::vector<RestoredNode> restart() {
    std::map<int, CommitEvidence> known;
    for (const int node : kPrimary) known.emplace(node, evidence_of(node));
    return restart(known);
  }

  // --- what there is ------------------------------------------------------------------------------------------------
  void expect_truth(int node) {
    Worker asks(engine_, node);
    for (const auto& [id, committed] : truth_) {
      const auto status = asks->status(id);
      ASSERT_TRUE(status.ok()) << int(id.node().value) << ":" << id.sequence();
      ASSERT_FALSE(status->running()) << int(id.node().value) << ":" << id.sequence();
      ASSERT_EQ(status->committed(), committed) << int(id.node().value) << ":" << id.sequence();
    }
  }
  using Pages = std::map<bufmgr::PageType, uint64_t>;
  // Allocated pages by type.
  static Pages count_pages(Worker& worker) {
    Pages pages;
    alignas(8) std::byte copy[coherence::kPageSize];
    auto& pool = worker->pool();
    for (auto at = *pool.next_allocated(worker.session(), PageId::at({0}, 0)); at.valid();
         at = *pool.next_allocated(worker.session(), at + 1)) {
      EXPECT_TRUE(pool.copy_page(worker.session(), at, copy).ok());
      ++pages[reinterpret_cast<const bufmgr::PageHeader*>(copy)->type];
    }
    return pages;
  }
  static uint64_t load(Worker& worker, coherence::PoolAddress at) { return *worker.session().memory().load(at); }

  struct Event {
    size_t notes_before;  // of the node's log
    uint64_t xid;
    bool committed;
    bool operator==(const Event&) const = default;
  };
  Engine engine_;
  std::mt19937_64 random_{gcl_test::seed(3)};
  uint32_t xid_ = 700;
  std::vector<std::unique_ptr<Open>> open_;
  std::map<TxnId, bool> truth_;
  std::map<int, uint64_t> highest_;
  std::map<int, std::vector<Event>> events_;
  std::map<int, size_t> log_from_;
  std::vector<bool> joined_ = std::vector<bool>(1 + kPrimaries, true);
  std::unique_ptr<SavedWords> words_;
  StatusesOfCopy copy_;
};

}  // namespace engine_test
