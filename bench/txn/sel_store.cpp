// Pages over SEL: a latch word beside each page in the pool, and no cache.  Each access is one batch [CAS or FAA;
// READ]; what is kept is the latch itself, and what was changed is written back with its release, which goes in the
// background (paper.unlock-in-background).
#include <cstring>
#include <map>
#include <vector>

#include "bench/txn/page_store.hpp"

namespace txn {
namespace {

constexpr uint64_t kWriter = uint64_t{1} << 63;
constexpr uint64_t kPostedNs = 50;  // the release is on its way before what the thread does next

class SelStore final : public PageStore {
 public:
  SelStore(const paper::Setup& setup, paper::Network& network, bool transactions)
      : costs_(setup.costs),
        network_(network),
        transactions_(transactions),
        threads_(setup.work.threads),
        words_(setup.work.pages()),
        pool_(setup.work.pages() * network.gcl()),
        mine_(size_t(setup.work.nodes * setup.work.threads)) {
    for (int n = 0; n < setup.work.nodes; n++) crews_.emplace_back(n);
  }
  void search(int node, const Row& row) override {
    for (int level = 0; level < kIndexLevels; level++) {
      network_.batch(node, network_.memory_node(row.page + uint64_t(level)), {{false, 0, network_.gcl()}}, [] {});
      paper::pass(costs_.local_access_ns);
    }
  }

  std::byte* latch(int node, int thread, uint64_t page, bool write) override {
    Copy copy;
    for (;;) {
      uint64_t old = 0;
      copy.bytes.resize(network_.gcl());
      network_.batch(node, network_.memory_node(page), {{true, 16, 8}, {false, 0, network_.gcl()}}, [&] {
        old = words_[page];
        memcpy(copy.bytes.data(), &pool_[page * network_.gcl()], network_.gcl());
        if (!write)
          words_[page]++;
        else if (old == 0)
          words_[page] = kWriter;
      });
      if (write ? old == 0 : !(old & kWriter)) break;
      if (!write) release(node, page, 1, {});
      if (transactions_) return nullptr;
    }
    paper::pass(costs_.local_access_ns);
    return (mine(node, thread)[page] = std::move(copy)).bytes.data();
  }
  void changed(int node, int thread, const Row& row) override {
    mine(node, thread)[row.page].lines.push_back(row.line);
  }
  void unlatch(int node, int thread, uint64_t page, bool write) override {
    if (transactions_) return;  // a page that is kept
    let_go(node, thread, page, write);
  }

  bool keep(int, int, uint64_t, bool, Lines) override { return true; }
  std::byte* latch_kept(int node, int thread, uint64_t page) override { return mine(node, thread)[page].bytes.data(); }
  void let_go(int node, int thread, uint64_t page, bool write) override {
    const auto at = mine(node, thread).find(page);
    Copy copy = std::move(at->second);
    mine(node, thread).erase(at);
    release(node, page, write ? kWriter : 1, std::move(copy));
  }

 private:
  struct Copy {
    std::vector<std::byte> bytes;
    std::vector<uint32_t> lines;  // that were changed
  };
  using Copies = std::map<uint64_t, Copy>;
  Copies& mine(int node, int thread) { return mine_[size_t(node * threads_ + thread)]; }

  void release(int node, uint64_t page, uint64_t from_word, Copy copy) {
    crews_[size_t(node)].run([=, this, copy = std::make_shared<Copy>(std::move(copy))] {
      std::vector<paper::Network::Verb> verbs;
      if (!copy->lines.empty()) verbs.push_back({false, 64 * copy->lines.size(), 0});
      verbs.push_back({true, 8, 8});
      network_.batch(node, network_.memory_node(page), verbs, [&] {
        for (const uint32_t line : copy->lines)
          memcpy(&pool_[page * network_.gcl() + line * 64], &copy->bytes[line * 64], 64);
        words_[page] -= from_word;
      });
    });
    paper::pass(kPostedNs);
  }

  const paper::Costs& costs_;
  paper::Network& network_;
  const bool transactions_;
  const int threads_;
  std::vector<uint64_t> words_;
  std::vector<std::byte> pool_;
  std::vector<Copies> mine_;  // of each thread: what it has latched
  std::vector<paper::Crew> crews_;
};

}  // namespace

std::unique_ptr<PageStore> make_sel_store(const paper::Setup& setup, paper::Network& network, bool transactions) {
  return std::make_unique<SelStore>(setup, network, transactions);
}

}  // namespace txn
