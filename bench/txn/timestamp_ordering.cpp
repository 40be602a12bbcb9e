// Strict timestamp ordering: transactions take effect in the order of their timestamps.  A read says its timestamp in
// the row, so it latches the page exclusively.  A change is announced in the row first, and made at the commit; a
// transaction that meets an announcement of an older one, or comes too late, is rolled back.
#include <vector>

#include "bench/txn/engine.hpp"

namespace txn {
namespace {

class TimestampOrdering final : public Engine {
 public:
  TimestampOrdering(std::unique_ptr<PageStore> store, std::vector<Log>& logs) : store_(std::move(store)), logs_(logs) {}
  void start() override { store_->start(); }

  bool run(int node, int thread, std::span<const Step> steps, Seen* seen) override {
    const uint64_t now = timestamp(node, thread);
    for (const Step& step : steps) {
      store_->search(node, step.row);
      const bool immutable = step.access == Access::kImmutable;
      std::byte* const bytes = store_->latch(node, thread, step.row.page, !immutable);
      if (immutable) {
        store_->unlatch(node, thread, step.row.page, false);
        continue;
      }
      Stored& row = stored(bytes, step.row.line);
      const bool in_time = step.access == Access::kRead ? may_read(row, now) : may_update(row, now);
      if (in_time) access(node, thread, step, row, now, seen);
      store_->unlatch(node, thread, step.row.page, true);
      if (in_time) continue;
      end(node, thread, *seen, false, now);
      return false;
    }
    if (!seen->writes.empty()) logs_[size_t(node)].flush();
    end(node, thread, *seen, true, now);
    return true;
  }

 private:
  // By the clock, which all nodes have alike here (txn.clocks-agree); no two are equal.
  uint64_t timestamp(int node, int thread) {
    return (sim::scheduler()->now() + 1) << 16 | uint64_t(node) << 8 | uint64_t(thread);
  }
  static bool may_read(const Stored& row, uint64_t now) {
    return row.written_at <= now && (row.pending == 0 || row.pending > now);
  }
  static bool may_update(const Stored& row, uint64_t now) {
    return row.written_at <= now && row.read_at <= now && row.pending == 0;
  }
  void access(int node, int thread, const Step& step, Stored& row, uint64_t now, Seen* seen) {
    seen->reads.emplace_back(step.row, row.version);
    const uint64_t read_at = row.read_at;
    if (read_at < now) row.read_at = now;
    if (step.access == Access::kUpdate) {
      row.pending = now;
      seen->writes.emplace_back(step.row, row.version + 1);
    }
    if (read_at < now || step.access == Access::kUpdate) store_->changed(node, thread, step.row);
  }
  void end(int node, int thread, const Seen& seen, bool committed, uint64_t now) {
    for (const auto& [row, version] : seen.writes) {
      Stored& held = stored(store_->latch(node, thread, row.page, true), row.line);
      held.pending = 0;
      if (committed) held.version = version, held.written_at = now;
      store_->changed(node, thread, row);
      store_->unlatch(node, thread, row.page, true);
    }
  }

  const std::unique_ptr<PageStore> store_;
  std::vector<Log>& logs_;
};

}  // namespace

std::unique_ptr<Engine> make_timestamp_ordering(std::unique_ptr<PageStore> store, std::vector<Log>& logs) {
  return std::make_unique<TimestampOrdering>(std::move(store), logs);
}

}  // namespace txn
