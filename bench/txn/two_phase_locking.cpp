// Strict two-phase locking with pages as what is locked, and no waiting: a page that another transaction has ends this
// one (txn.no-wait).  A page is latched once for all that is read of it, and kept; what was changed is written at the
// end.
#include <algorithm>

#include "bench/txn/engine.hpp"

namespace txn {
namespace {

class TwoPhaseLocking final : public Engine {
 public:
  TwoPhaseLocking(std::unique_ptr<PageStore> store, std::vector<Log>& logs) : store_(std::move(store)), logs_(logs) {}
  void start() override { store_->start(); }

  bool run(int node, int thread, std::span<const Step> steps, Seen* seen) override {
    std::vector<Kept> kept;
    const bool all = lock(node, thread, steps, &kept, seen);
    const bool changes = std::ranges::any_of(kept, [](const Kept& one) { return one.write; });
    if (all && changes) {
      logs_[size_t(node)].flush();
      install(node, thread, kept, *seen);
    }
    for (const Kept& one : kept) store_->let_go(node, thread, one.page, one.write);
    return all;
  }

 private:
  struct Kept {
    uint64_t page;
    bool write;
  };

  bool lock(int node, int thread, std::span<const Step> steps, std::vector<Kept>* kept, Seen* seen) {
    for (size_t i = 0; i < steps.size(); i++) {
      const uint64_t page = steps[i].row.page;
      store_->search(node, steps[i].row);
      if (steps[i].access == Access::kImmutable) {
        look(node, thread, steps[i].row);
        continue;
      }
      if (std::ranges::any_of(*kept, [&](const Kept& one) { return one.page == page; })) continue;
      const auto of_page = [&](const Step& step) { return step.row.page == page && step.access != Access::kImmutable; };
      const bool write =
          std::ranges::any_of(steps, [&](const Step& step) { return of_page(step) && step.access == Access::kUpdate; });
      std::byte* const bytes = store_->latch(node, thread, page, write);
      if (bytes == nullptr) return false;
      const size_t reads = seen->reads.size(), writes = seen->writes.size();
      for (const Step& step : steps) {
        if (!of_page(step)) continue;
        const uint64_t version = stored(bytes, step.row.line).version;
        seen->reads.emplace_back(step.row, version);
        if (step.access == Access::kUpdate) seen->writes.emplace_back(step.row, version + 1);
      }
      if (!store_->keep(node, thread, page, write)) {
        seen->reads.resize(reads), seen->writes.resize(writes);
        return false;
      }
      kept->push_back({page, write});
    }
    return true;
  }
  void look(int node, int thread, const Row& row) {
    if (store_->latch(node, thread, row.page, false) == nullptr) return;
    if (!store_->keep(node, thread, row.page, false)) return;
    store_->let_go(node, thread, row.page, false);
  }
  void install(int node, int thread, const std::vector<Kept>& kept, const Seen& seen) {
    for (const Kept& one : kept) {
      if (!one.write) continue;
      std::byte* const bytes = store_->latch_kept(node, thread, one.page);
      for (const auto& [row, version] : seen.writes) {
        if (row.page != one.page) continue;
        stored(bytes, row.line).version = version;
        store_->changed(node, thread, row);
      }
      store_->unlatch(node, thread, one.page, true);
    }
  }

  const std::unique_ptr<PageStore> store_;
  std::vector<Log>& logs_;
};

}  // namespace

std::unique_ptr<Engine> make_two_phase_locking(std::unique_ptr<PageStore> store, std::vector<Log>& logs) {
  return std::make_unique<TwoPhaseLocking>(std::move(store), logs);
}

}  // namespace txn
