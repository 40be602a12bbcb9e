// Data in partitions, each of one node, which alone has it: two-phase locking there without waiting, and two-phase
// commit where a transaction has rows of several nodes.  Nothing is shared, so nothing has to be coherent.
#include <functional>
#include <map>
#include <unordered_map>

#include "bench/txn/engine.hpp"

namespace txn {
namespace {

// Does all of them side by side, each in a fiber, and returns when all are done.
void side_by_side(std::vector<paper::Crew>& crews, int node, const std::vector<std::function<void()>>& tasks) {
  uint32_t left = uint32_t(tasks.size());
  for (const auto& task : tasks)
    crews[size_t(node)].run([&task, &left] {
      task();
      left--;
      sim::scheduler()->wake(&left, 1);
    });
  while (left > 0) sim::scheduler()->park(&left, left, 1'000'000);
}

class Partitioned final : public Engine {
 public:
  Partitioned(const paper::Setup& setup, paper::Network& network, Owner owner, const void* of, std::vector<Log>& logs)
      : costs_(setup.costs), network_(network), owner_(owner), of_(of), logs_(logs), rows_(size_t(setup.work.nodes)) {
    for (int n = 0; n < setup.work.nodes; n++) crews_.emplace_back(n);
  }

  bool run(int node, int, std::span<const Step> steps, Seen* seen) override {
    Transaction t;
    for (const Step& step : steps) {
      const bool immutable = step.access == Access::kImmutable;  // each node has a copy
      t.parts[immutable ? node : owner_(step.row, of_)].steps.push_back(step);
    }
    t.parts[node].home = true;
    const bool locked = each(node, t, [this](int at, Part& part) { part.locked = lock(at, part); });
    const bool changes = writes(t);
    bool commits = locked && all_locked(t);
    if (commits && changes && t.parts.size() > 1)
      commits = each(node, t, [this](int at, const Part& part) {
        if (!part.home && part.writes()) logs_[size_t(at)].flush();  // PREPARED
      });
    if (commits && changes) logs_[size_t(node)].flush();
    for (auto& [at, part] : t.parts) {
      for (const auto& one : part.seen.reads) seen->reads.push_back(one);
      for (const auto& one : part.seen.writes) seen->writes.push_back(one);
    }
    finish(node, t, commits);
    return commits;
  }

 private:
  struct Part {
    bool home = false, locked = false;
    std::vector<Step> steps;
    Seen seen;
    std::vector<std::pair<Row, bool>> held;
    bool writes() const { return !seen.writes.empty(); }
  };
  struct Transaction {
    std::map<int, Part> parts;  // by node
  };
  struct Locked {
    Stored stored{};
    uint32_t shared = 0;
    bool exclusively = false;
  };
  static bool all_locked(const Transaction& t) {
    for (const auto& [at, part] : t.parts)
      if (!part.locked) return false;
    return true;
  }
  static bool writes(const Transaction& t) {
    for (const auto& [at, part] : t.parts)
      if (part.writes()) return true;
    return false;
  }

  // What a node does for its part, there: by a message and its answer, where it is another one.
  template <class Body>
  bool each(int home, Transaction& t, Body body) {
    std::vector<std::function<void()>> tasks;
    for (auto& [at, part] : t.parts) {
      if (at == home) continue;
      tasks.push_back([this, home, to = at, body, p = &part] {
        const uint64_t bytes = network_.costs().message_bytes;
        network_.travel(home, to, bytes + 32 * p->steps.size());
        network_.handle(to);
        body(to, *p);
        network_.travel(to, home, bytes + 32 * p->steps.size());
        network_.handle(home);
      });
    }
    body(home, t.parts[home]);
    if (!tasks.empty()) side_by_side(crews_, home, tasks);
    return true;
  }
  bool lock(int node, Part& part) {
    for (const Step& step : part.steps) {
      paper::pass((kIndexLevels + 1) * costs_.local_access_ns);
      if (step.access == Access::kImmutable) continue;
      Locked& row = rows_[size_t(node)][step.row.number()];
      const bool write = step.access == Access::kUpdate;
      if (row.exclusively || (write && row.shared > 0)) return false;
      row.exclusively = write;
      row.shared += !write;
      part.held.emplace_back(step.row, write);
      part.seen.reads.emplace_back(step.row, row.stored.version);
      if (write) part.seen.writes.emplace_back(step.row, row.stored.version + 1);
    }
    return true;
  }
  void let_go(int node, const Part& part, bool commits) {
    for (const auto& [row, write] : part.held) {
      Locked& held = rows_[size_t(node)][row.number()];
      held.shared -= !write;
      if (write) held.exclusively = false;
      if (write && commits) held.stored.version++;
    }
  }
  // The client has its answer; the others hear of it.
  void finish(int home, Transaction& t, bool commits) {
    for (auto& [at, part] : t.parts) {
      if (at == home) {
        let_go(home, part, commits);
        continue;
      }
      crews_[size_t(home)].run([this, home, to = at, commits, p = std::make_shared<Part>(std::move(part))] {
        network_.travel(home, to, network_.costs().message_bytes);
        network_.handle(to);
        let_go(to, *p, commits);
      });
    }
  }

  const paper::Costs& costs_;
  paper::Network& network_;
  const Owner owner_;
  const void* const of_;
  std::vector<Log>& logs_;
  std::vector<paper::Crew> crews_;
  std::vector<std::unordered_map<uint64_t, Locked>> rows_;  // of each node
};

}  // namespace

std::unique_ptr<Engine> make_partitioned(const paper::Setup& setup, paper::Network& network, Owner owner,
                                         const void* of, std::vector<Log>& logs) {
  return std::make_unique<Partitioned>(setup, network, owner, of, logs);
}

}  // namespace txn
