// SelccCluster: the product's nodes, sessions and lines in virtual time, with a frame directory as simple as can be,
// and eviction in the background, a fiber for each memory node as the paper has a ring for each queue pair.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/paper/network.hpp"
#include "bench/paper/protocol.hpp"
#include "coherence/line/line.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/session.hpp"

namespace paper {

class SelccCluster {
 public:
  SelccCluster(const Setup&, Network&);
  ~SelccCluster();
  SelccCluster(const SelccCluster&) = delete;
  void start();  // spawns each node's worker, and its evictors

  // From a thread's fiber.  The page's line, latched; null: a transaction of another node holds the page.
  coherence::Line* latch(int node, int thread, uint64_t page, bool write);
  std::byte* bytes(int node, const coherence::Line&) const;
  // That line of 64 bytes was changed, under the exclusive latch.
  void changed(coherence::Line&, uint32_t line) const;
  void unlatch(int node, int thread, coherence::Line&, bool write);
  // Transaction-long holds, begun under the latch (coherence.held-until-end).
  void hold(int node, int thread, coherence::Line&, bool write);
  void drop(int node, int thread, coherence::Line&, bool write);

 private:
  struct Member;
  struct Freed;
  coherence::PageId id(uint64_t page) const {
    const auto memory = uint64_t(network_.memory());
    return coherence::PageId::at({uint8_t(page % memory)}, page / memory);
  }
  coherence::Line& line_of(Member& m, coherence::Session& s, uint64_t page);
  void evict_for(Member& m, int memory_node);
  int evict(Member& m, coherence::Session& s, int memory_node);
  void print_counters(const Member& m) const;

  const Setup& setup_;
  Network& network_;
  std::string home_ = "/dev/shm/gcl-paper-XXXXXX", path_;
  std::unique_ptr<coherence::Pool> pool_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace paper
