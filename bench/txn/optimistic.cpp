// Optimistic concurrency control: a transaction reads under shared latches, and at its end marks the rows that it
// changes, looks whether all that it has read is as it was, and changes them.  So each row's page is latched at least
// twice.
#include <algorithm>
#include <vector>

#include "bench/txn/engine.hpp"

namespace txn {
namespace {

class Optimistic final : public Engine {
 public:
  Optimistic(std::unique_ptr<PageStore> store, std::vector<Log>& logs) : store_(std::move(store)), logs_(logs) {}
  void start() override { store_->start(); }

  bool run(int node, int thread, std::span<const Step> steps, Seen* seen) override {
    const uint64_t self = uint64_t(node) << 8 | uint64_t(thread + 1);
    for (const Step& step : steps) {
      store_->search(node, step.row);
      const Stored row = read(node, thread, step.row);
      if (step.access == Access::kImmutable) continue;
      if (row.pending != 0) return false;
      seen->reads.emplace_back(step.row, row.version);
      if (step.access == Access::kUpdate) seen->writes.emplace_back(step.row, row.version + 1);
    }
    size_t marked = 0;
    const bool valid = mark(node, thread, *seen, self, &marked) && is_as_it_was(node, thread, *seen, self);
    if (valid && !seen->writes.empty()) logs_[size_t(node)].flush();
    for (size_t i = 0; i < marked; i++) {
      const auto& [row, version] = seen->writes[i];
      change(node, thread, row, [&](Stored& held) {
        held.pending = 0;
        if (valid) held.version = version;
        return true;
      });
    }
    return valid;
  }

 private:
  Stored read(int node, int thread, const Row& row) {
    const Stored copy = stored(store_->latch(node, thread, row.page, false), row.line);
    store_->unlatch(node, thread, row.page, false);
    return copy;
  }
  template <class Change>
  bool change(int node, int thread, const Row& row, Change change) {
    const bool changed = change(stored(store_->latch(node, thread, row.page, true), row.line));
    if (changed) store_->changed(node, thread, row);
    store_->unlatch(node, thread, row.page, true);
    return changed;
  }
  bool mark(int node, int thread, const Seen& seen, uint64_t self, size_t* marked) {
    for (const auto& [row, version] : seen.writes) {
      const bool free = change(node, thread, row, [&, before = version - 1](Stored& held) {
        if (held.pending != 0 || held.version != before) return false;
        held.pending = self;
        return true;
      });
      if (!free) return false;
      ++*marked;
    }
    return true;
  }
  bool is_as_it_was(int node, int thread, const Seen& seen, uint64_t self) {
    return std::ranges::all_of(seen.reads, [&](const auto& one) {
      const bool mine = std::ranges::any_of(seen.writes, [&](const auto& write) { return write.first == one.first; });
      if (mine) return true;  // looked at when it was marked
      const Stored now = read(node, thread, one.first);
      return now.version == one.second && (now.pending == 0 || now.pending == self);
    });
  }

  const std::unique_ptr<PageStore> store_;
  std::vector<Log>& logs_;
};

}  // namespace

std::unique_ptr<Engine> make_optimistic(std::unique_ptr<PageStore> store, std::vector<Log>& logs) {
  return std::make_unique<Optimistic>(std::move(store), logs);
}

}  // namespace txn
