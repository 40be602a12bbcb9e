// Validation at the commit timestamp, in the order of steps for which tests/model/serializable finds it right: reads
// are of a snapshot, and note their pages; a row is locked by its newest version.  A transaction that has changed
// something is PREPARED, takes its timestamp, announces it in its status word, looks at the pages that it has read,
// makes that durable, and sets its final status.  One that has changed nothing is over.  Nobody waits for a row
// (txn.no-wait); a transaction that commits is waited for.
#include <algorithm>

#include "bench/txn/versions.hpp"

namespace txn {
namespace {

constexpr uint32_t kCounterLine = 31;  // of a page: how often it was changed

class Validation final : public Engine {
 public:
  Validation(std::unique_ptr<PageStore> store, paper::Network& network, std::vector<Log>& logs, int tries)
      : store_(std::move(store)), words_(network), logs_(logs), tries_(tries) {}
  void start() override { store_->start(); }

  bool run(int node, int thread, std::span<const Step> steps, Seen* seen) override {
    Transaction t{{node, thread}, seen};
    t.self.id = words_.begin(node, &t.self.snapshot);
    bool all = true;
    for (size_t i = 0; all && i < steps.size();) {
      const std::span<const Step> together = of_a_page(steps.subspan(i));
      store_->search(node, together[0].row);
      if (together[0].access == Access::kUpdate) {
        Patience patience = words_.patience(tries_);
        Put outcome = change(t, together[0].row);
        while (outcome == Put::kRuns && patience.wait()) outcome = change(t, together[0].row);
        all = outcome == Put::kDone;
      } else {
        all = read(t, together);
      }
      i += together.size();
    }
    if (seen->writes.empty()) return all;
    uint64_t cts = 0;
    if (all) {
      cts = words_.set_and_count(node, t.self.id, {Status::kPrepared});
      words_.set(node, t.self.id, {Status::kAnnounced, cts});
      all = std::ranges::all_of(t.pages, [&](const Noted& page) { return is_valid(t, page, cts); });
    }
    if (all) logs_[size_t(node)].flush();
    words_.set(node, t.self.id, all ? Status{Status::kCommitted, cts} : Status{Status::kAborted});
    return all;
  }

 private:
  struct Noted {
    uint64_t page, count;
    bool proves;  // by not having changed
    std::vector<Row> rows = {};
  };
  struct Transaction {
    Self self;
    Seen* seen;
    std::vector<Noted> pages = {};
  };

  static uint64_t& count_of(std::byte* page) { return stored(page, kCounterLine).version; }

  bool read(Transaction& t, std::span<const Step> steps) {
    const uint64_t page = steps[0].row.page;
    std::byte* const bytes = store_->latch(t.self.node, t.self.thread, page, false);
    const uint64_t count = count_of(bytes);
    std::vector<Versions> lines;
    for (const Step& step : steps) lines.push_back(versions(bytes, step.row.line));
    store_->unlatch(t.self.node, t.self.thread, page, false);
    if (steps[0].access == Access::kImmutable) return true;
    auto noted = std::ranges::find(t.pages, page, &Noted::page);
    if (noted == t.pages.end()) noted = t.pages.insert(noted, {page, count, true});
    for (size_t i = 0; i < steps.size(); i++) {
      // The rows that are read, in place of all rows of the page: others that run cost nothing here.
      noted->proves &= !runs(t, lines[i]) && !is_newer(words_, t.self, lines[i]);
      noted->rows.push_back(steps[i].row);
      uint64_t number = 0;
      if (look(words_, t.self, lines[i], &number) != Read::kFound) return false;
      t.seen->reads.emplace_back(steps[i].row, number);
    }
    return true;
  }
  bool runs(const Transaction& t, const Versions& line) const {
    return line.at[0].by != t.self.id && words_.known(line.at[0].by).running();
  }

  Put change(Transaction& t, const Row& row) {
    std::byte* const bytes = store_->latch(t.self.node, t.self.thread, row.page, true);
    uint64_t number = 0;
    const Put outcome = put(words_, t.self, &versions(bytes, row.line), &number);
    if (outcome == Put::kDone) {
      const auto noted = std::ranges::find(t.pages, row.page, &Noted::page);
      if (noted != t.pages.end() && noted->count == count_of(bytes)) noted->count++;
      count_of(bytes)++;
      store_->changed(t.self.node, t.self.thread, row);
      store_->changed(t.self.node, t.self.thread, {row.page, kCounterLine});
      t.seen->reads.emplace_back(row, number - 1);
      t.seen->writes.emplace_back(row, number);
    }
    store_->unlatch(t.self.node, t.self.thread, row.page, true);
    return outcome;
  }

  bool is_valid(Transaction& t, const Noted& noted, uint64_t cts) {
    std::byte* const bytes = store_->latch(t.self.node, t.self.thread, noted.page, false);
    const bool proven = noted.proves && count_of(bytes) == noted.count;
    std::vector<Versions> lines;
    if (!proven)
      for (const Row& row : noted.rows) lines.push_back(versions(bytes, row.line));
    store_->unlatch(t.self.node, t.self.thread, noted.page, false);
    return std::ranges::all_of(lines, [&](const Versions& line) { return is_valid(t, line, cts); });
  }
  // Nothing was committed between the snapshot and the timestamp.
  bool is_valid(Transaction& t, const Versions& line, uint64_t cts) {
    if (line.at[0].by == t.self.id) return true;  // it was looked at when it was locked
    return std::ranges::all_of(line.at, [&](const auto& version) {
      Status status = words_.known(version.by);
      if (status.running()) do {
          status = words_.load(t.self.node, version.by);
        } while (status.state == Status::kPrepared || (status.state == Status::kAnnounced && status.cts < cts));
      return status.state != Status::kCommitted || status.cts <= t.self.snapshot || status.cts > cts;
    });
  }

  const std::unique_ptr<PageStore> store_;
  Words words_;
  std::vector<Log>& logs_;
  const int tries_;
};

}  // namespace

std::unique_ptr<Engine> make_validation(std::unique_ptr<PageStore> store, paper::Network& network,
                                        std::vector<Log>& logs, int tries) {
  return std::make_unique<Validation>(std::move(store), network, logs, tries);
}

}  // namespace txn
