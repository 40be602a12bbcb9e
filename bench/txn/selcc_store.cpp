// Pages over SELCC: what a transaction keeps is the right that lazy release leaves with the node anyway, as in the
// product (coherence.held-until-end); which transactions of the node keep a page, the node knows by itself.
#include <algorithm>
#include <vector>

#include "bench/paper/selcc_cluster.hpp"
#include "bench/txn/page_store.hpp"

namespace txn {
namespace {

class SelccStore final : public PageStore {
 public:
  SelccStore(const paper::Setup& setup, paper::Network& network)
      : costs_(setup.costs),
        cluster_(setup, network),
        threads_(setup.work.threads),
        latched_(size_t(setup.work.nodes * setup.work.threads)),
        kept_(size_t(setup.work.nodes), std::vector<Kept>(setup.work.pages())) {}
  void start() override { cluster_.start(); }
  void search(int, const Row&) override { paper::pass(kIndexLevels * costs_.local_access_ns); }

  std::byte* latch(int node, int thread, uint64_t page, bool write) override {
    paper::pass(costs_.local_access_ns);
    coherence::Line* const line = cluster_.latch(node, thread, page, write);
    latched(node, thread) = line;
    return line != nullptr ? cluster_.bytes(node, *line) : nullptr;
  }
  void changed(int node, int thread, const Row& row) override { cluster_.changed(*latched(node, thread), row.line); }
  void unlatch(int node, int thread, uint64_t, bool write) override {
    cluster_.unlatch(node, thread, *latched(node, thread), write);
  }

  bool keep(int node, int thread, uint64_t page, bool write, Lines rows) override {
    Kept& kept = kept_[size_t(node)][page];
    coherence::Line& line = *latched(node, thread);
    const bool free = std::ranges::none_of(kept.by, [&](const By& one) {
      return one.thread != thread && ((one.written | (write ? one.read : 0)) & rows) != 0;
    });
    if (free) {
      By& mine = kept.of(thread);
      Lines& before = write ? mine.written : mine.read;
      if (before == 0) cluster_.hold(node, thread, line, write);
      before |= rows;
      kept.line = &line;
    }
    cluster_.unlatch(node, thread, line, write);
    return free;
  }
  std::byte* latch_kept(int node, int thread, uint64_t page) override { return latch(node, thread, page, true); }
  void let_go(int node, int thread, uint64_t page, bool write) override {
    Kept& kept = kept_[size_t(node)][page];
    By& mine = kept.of(thread);
    (write ? mine.written : mine.read) = 0;
    if ((mine.written | mine.read) == 0) kept.by.erase(kept.by.begin() + (&mine - kept.by.data()));
    cluster_.drop(node, thread, *kept.line, write);
  }

 private:
  // By transactions of one node.
  struct By {
    int thread;
    Lines read = 0, written = 0;
  };
  struct Kept {
    coherence::Line* line = nullptr;  // its page stays there as long
    std::vector<By> by;
    By& of(int thread) {
      const auto found = std::ranges::find(by, thread, &By::thread);
      return found != by.end() ? *found : by.emplace_back(thread);
    }
  };
  coherence::Line*& latched(int node, int thread) { return latched_[size_t(node * threads_ + thread)]; }

  const paper::Costs& costs_;
  paper::SelccCluster cluster_;
  const int threads_;
  std::vector<coherence::Line*> latched_;  // by each thread
  std::vector<std::vector<Kept>> kept_;    // by node and page
};

}  // namespace

std::unique_ptr<PageStore> make_selcc_store(const paper::Setup& setup, paper::Network& network) {
  return std::make_unique<SelccStore>(setup, network);
}

}  // namespace txn
