// Strict two-phase locking as the product has it: a snapshot, and holds of what is read and written, until the status
// is final.  Step by step: what is read first and changed later is held to read first.  What was committed between the
// snapshot and the hold is a conflict; a transaction that only reads lets go of its holds then, and reads on by its
// snapshot.
#include <algorithm>
#include <set>

#include "bench/txn/versions.hpp"

namespace txn {
namespace {

class Holds final : public Engine {
 public:
  Holds(std::unique_ptr<PageStore> store, paper::Network& network, std::vector<Log>& logs, bool rows, int tries)
      : store_(std::move(store)), words_(network), logs_(logs), rows_(rows), tries_(tries) {}
  void start() override { store_->start(); }

  bool run(int node, int thread, std::span<const Step> steps, Seen* seen) override {
    Transaction t{{node, thread}, seen};
    t.self.id = words_.begin(node, &t.self.snapshot);
    t.only_reads = std::ranges::none_of(steps, [](const Step& step) { return step.access == Access::kUpdate; });
    bool all = true;
    for (size_t i = 0; all && i < steps.size();) {
      const std::span<const Step> together = of_a_page(steps.subspan(i));
      store_->search(node, together[0].row);
      all = access_in_turn(t, together);
      i += together.size();
    }
    if (all && !seen->writes.empty()) {
      logs_[size_t(node)].flush();
      const uint64_t cts = words_.set_and_count(node, t.self.id, {Status::kAnnounced, kNotYet});
      words_.set(node, t.self.id, {Status::kCommitted, cts});
    } else if (!seen->writes.empty()) {
      words_.set(node, t.self.id, {Status::kAborted});
    }
    let_go(t);
    return all;
  }

 private:
  static constexpr uint64_t kNotYet = ~uint64_t{0};  // COMMITTING: later than any snapshot
  struct Kept {
    uint64_t page;
    Lines read = 0, written = 0;
  };
  struct Transaction {
    Self self;
    Seen* seen;
    std::vector<Kept> kept = {};
    bool only_reads = false, let_go = false;
    Kept& of(uint64_t page) {
      const auto found = std::ranges::find(kept, page, &Kept::page);
      return found != kept.end() ? *found : kept.emplace_back(page);
    }
  };

  enum class Outcome : uint8_t { kDone, kHeld, kConflict };
  // Of two of a node that have read a page and want to write there, the second one is refused while the first waits.
  bool access_in_turn(Transaction& t, std::span<const Step> steps) {
    Outcome outcome = access(t, steps);
    if (outcome != Outcome::kHeld) return outcome == Outcome::kDone;
    const uint64_t page = steps[0].row.page;
    const bool upgrades = steps[0].access == Access::kUpdate && t.of(page).read != 0;
    const std::pair<int, uint64_t> place(t.self.node, page);
    if (upgrades && !upgrading_.insert(place).second) return false;
    Patience patience = words_.patience(tries_);
    while (outcome == Outcome::kHeld && patience.wait()) outcome = access(t, steps);
    if (upgrades) upgrading_.erase(place);
    return outcome == Outcome::kDone;
  }
  Outcome access(Transaction& t, std::span<const Step> steps) {
    const auto& [node, thread, id, snapshot] = t.self;
    const uint64_t page = steps[0].row.page;
    const bool write = steps[0].access == Access::kUpdate, hold = steps[0].access != Access::kImmutable && !t.let_go;
    std::byte* const bytes = store_->latch(node, thread, page, write);
    if (bytes == nullptr) return Outcome::kHeld;
    std::vector<Versions> lines;
    Lines rows = 0;
    for (const Step& step : steps) lines.push_back(versions(bytes, step.row.line)), rows |= Lines{1} << step.row.line;
    if (!rows_) rows = kAllLines;
    Kept& kept = t.of(page);
    Lines& mine = write ? kept.written : kept.read;
    if (!hold || (mine & rows) == rows) {
      const bool done = !write || change(t, steps[0].row, bytes);
      store_->unlatch(node, thread, page, write);
      if (!done) return Outcome::kConflict;
    } else {
      if (!store_->keep(node, thread, page, write, rows)) return Outcome::kHeld;
      mine |= rows;
      if (write) {
        const bool done = change(t, steps[0].row, store_->latch_kept(node, thread, page));
        store_->unlatch(node, thread, page, true);
        if (!done) return Outcome::kConflict;
      }
    }
    if (write || steps[0].access == Access::kImmutable) return Outcome::kDone;
    return read(t, steps, lines) ? Outcome::kDone : Outcome::kConflict;
  }
  bool change(Transaction& t, const Row& row, std::byte* bytes) {
    uint64_t number = 0;
    if (put(words_, t.self, &versions(bytes, row.line), &number) != Put::kDone) return false;
    store_->changed(t.self.node, t.self.thread, row);
    t.seen->reads.emplace_back(row, number - 1);
    t.seen->writes.emplace_back(row, number);
    return true;
  }
  bool read(Transaction& t, std::span<const Step> steps, const std::vector<Versions>& lines) {
    const bool conflict =
        !t.let_go && std::ranges::any_of(lines, [&](const Versions& line) { return is_newer(words_, t.self, line); });
    if (conflict && !t.only_reads) return false;
    if (conflict) let_go(t);
    for (size_t i = 0; i < steps.size(); i++) {
      uint64_t number = 0;
      if (look(words_, t.self, lines[i], &number) != Read::kFound) return false;
      t.seen->reads.emplace_back(steps[i].row, number);
    }
    return true;
  }
  void let_go(Transaction& t) {
    for (const Kept& one : t.kept) {
      if (one.read != 0) store_->let_go(t.self.node, t.self.thread, one.page, false);
      if (one.written != 0) store_->let_go(t.self.node, t.self.thread, one.page, true);
    }
    t.kept.clear();
    t.let_go = true;
  }

  const std::unique_ptr<PageStore> store_;
  Words words_;
  std::vector<Log>& logs_;
  const bool rows_;
  const int tries_;
  std::set<std::pair<int, uint64_t>> upgrading_;  // by node and page: one that waits
};

}  // namespace

std::unique_ptr<Engine> make_holds(std::unique_ptr<PageStore> store, paper::Network& network, std::vector<Log>& logs,
                                   bool rows, int tries) {
  return std::make_unique<Holds>(std::move(store), network, logs, rows, tries);
}

}  // namespace txn
