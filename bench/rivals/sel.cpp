// SEL: a shared-exclusive latch word beside each page in the pool, and no cache.  An operation is one batch [FAA or
// CAS; READ]; the release goes in the background (paper.unlock-in-background), with the one line of 64 bytes
// that changed.
#include "bench/paper/protocol.hpp"

namespace paper {
namespace {

constexpr uint64_t kWriter = uint64_t{1} << 63;
constexpr uint64_t kPostedNs = 50;  // the release is on its way before what the thread does next

class Sel final : public Protocol {
 public:
  Sel(const Setup& setup, Network& network)
      : setup_(setup),
        network_(network),
        truth_(setup.work.pages(), setup.work.gcl),
        words_(setup.work.pages()),
        lines_(setup.work.gcl / 64),
        pool_(words_.size() * lines_) {
    for (int n = 0; n < setup.work.nodes; n++) crews_.emplace_back(n);
  }

  void access(int node, int, const Access& a) override {
    uint64_t& held = pool_[a.page * lines_ + a.line];
    uint64_t old = 0, seen = 0;
    for (;;) {
      network_.batch(node, network_.memory_node(a.page), {{true, 16, 8}, {false, 0, network_.gcl()}}, [&] {
        old = words_[a.page];
        seen = held;
        if (!a.write)
          words_[a.page]++;
        else if (old == 0)
          words_[a.page] = kWriter;
      });
      if (a.write ? old == 0 : !(old & kWriter)) break;
      if (!a.write) release(node, a.page, 0, 1, nullptr, 0);
    }
    pass(setup_.costs.local_access_ns);
    if (!a.write) {
      truth_.read(a, seen);
      return release(node, a.page, 0, 1, nullptr, 0);
    }
    release(node, a.page, 64, kWriter, &held, truth_.write(a, seen));
  }

 private:
  void release(int node, uint64_t page, uint64_t bytes, uint64_t from_word, uint64_t* held, uint64_t value) {
    crews_[size_t(node)].run([=, this] {
      std::vector<Network::Verb> verbs;
      if (bytes > 0) verbs.push_back({false, bytes, 0});
      verbs.push_back({true, 8, 8});
      network_.batch(node, network_.memory_node(page), verbs, [&] {
        if (held) *held = value;
        words_[page] -= from_word;
      });
    });
    pass(kPostedNs);
  }

  const Setup& setup_;
  Network& network_;
  Truth truth_;
  std::vector<uint64_t> words_;
  uint64_t lines_;
  std::vector<uint64_t> pool_;
  std::vector<Crew> crews_;
};

}  // namespace

std::unique_ptr<Protocol> make_sel(const Setup& setup, Network& network) {
  return std::make_unique<Sel>(setup, network);
}

}  // namespace paper
