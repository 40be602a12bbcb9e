// SELCC: the product's own coherence as a protocol.
#include "bench/paper/protocol.hpp"
#include "bench/paper/selcc_cluster.hpp"

namespace paper {
namespace {

class Selcc final : public Protocol {
 public:
  Selcc(const Setup& setup, Network& network)
      : setup_(setup), truth_(setup.work.pages(), setup.work.gcl), cluster_(setup, network) {}
  void start() override { cluster_.start(); }
  void access(int node, int thread, const Access& a) override {
    pass(setup_.costs.local_access_ns - setup_.costs.section_ns);
    coherence::Line& line = *cluster_.latch(node, thread, a.page, a.write);  // no transactions: none holds it
    section(node, line, a);
    cluster_.unlatch(node, thread, line, a.write);
  }

 private:
  void section(int node, coherence::Line& line, const Access& a) {
    pass(setup_.costs.section_ns);
    auto* const word = reinterpret_cast<uint64_t*>(cluster_.bytes(node, line) + a.line * 64);
    if (!a.write) return truth_.read(a, *word);
    *word = truth_.write(a, *word);
    cluster_.changed(line, a.line);
  }

  const Setup& setup_;
  Truth truth_;
  SelccCluster cluster_;
};

}  // namespace

std::unique_ptr<Protocol> make_selcc(const Setup& setup, Network& network) {
  return std::make_unique<Selcc>(setup, network);
}

}  // namespace paper
