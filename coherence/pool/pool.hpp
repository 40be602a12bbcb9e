// Pool: the shared memory of all primaries, as one process knows it: which memory nodes and regions there are, and
// where pages and latch words lie: what a transport answers.  Its words are reached by verbs (transport/memory.hpp),
// and its members by Membership.  What is done with the files of memory nodes is region/'s, and LocalPool's, where all
// of them are on one machine.
//
// pool.compatibility-must-agree: the header names everything that must agree (format version, block size, the server's
// compatibility lines).  A primary that differs is refused, and the problem names both values.
// pool.clean-or-refused: a pool is `clean` when no node is in it and the last one left in order.  A pool that is
// neither clean, nor in use by living nodes, nor repaired (repair.alone) is opened by no process.
// pool.words-never-saved: latch words are never persisted: a clean pool's are all free (verified when it is saved).
//
// The files, the durable copy, and memory nodes that come later: pool.* in coherence/rules.md.
//
//   Problem problem;
//   auto pool = transport.open_pool({.path = "/dev/shm/p", .durable_path = "/data/p", .compatibility = lines},
//   &problem);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/pool/page_places.hpp"

namespace coherence {

inline constexpr int kRegionsMax = 16;
inline constexpr int kRegionNodeTable = 0;   // coherence
inline constexpr int kRegionLatchWords = 1;  // coherence
inline constexpr int kRegionPages = 2;       // bufmgr; its size sets the number of latch words
// Regions 3.. belong to the layers above; zero-filled at creation; in memory node 0 only.

struct RegionExtent {
  PoolAddress at;
  uint64_t bytes = 0;
};

struct PoolSpec {
  uint32_t nodes_max = 8;
  uint64_t region_bytes[kRegionsMax] = {};  // of memory node 0; [0] and [1] are computed
  uint32_t memory_nodes = 1;
  uint64_t further_pages_bytes = 0;  // of the pages of each memory node but 0
  const char* compatibility = "";    // lines "name=value\n" that every joining server must repeat exactly
  bool repairs_deaths = false;       // else a death fences the pool
  bool records_deaths = false;       // repair.recorded-first; REQUIRES: each process that opens it gives a durable path
};

struct AddedMemoryNode {
  MemoryNodeId memory_node;
  bool saved;  // false: the pool in memory has it, its durable copy does not; the problem says why
};

struct PoolFiles {
  const char* path = nullptr;          // in tmpfs or hugetlbfs; memory node 0's
  const char* durable_path = nullptr;  // likewise; null: nothing is saved or loaded
  const char* compatibility = "";
};

// What the daemon of a memory node says of itself, since it was started.
struct MemoryNodeFigures {
  char address[144] = "";  // where it is reached
  uint64_t up_us = 0;
  uint64_t links = 0;  // now
  uint64_t batches = 0, operations = 0, bytes_in = 0, bytes_out = 0;
  uint64_t refused = 0;                 // links ended for what they sent
  uint64_t user_us = 0, system_us = 0;  // processor time
};

class Interrupts;

class Pool {
 public:
  virtual ~Pool() = default;
  Pool(const Pool&) = delete;

  // Whether the nodes that are in the pool, also dead ones, have the protocol of this process (pool.one-protocol).
  // kIncompatible.  REQUIRES: nobody joins or leaves (Node, or the lock file held).
  virtual Status check_protocol(Problem*) const = 0;
  // --- any thread; a memory node that came later is looked for once in each process, all else is known
  // ----------------
  RegionExtent region(int index) const { return facts_.region[index]; }
  virtual uint32_t memory_nodes() const = 0;  // grows (pool.counted-last)
  // Of these the first, which all nodes in the pool know: new pages are on one of them, so that no node meets a page of
  // a memory node that it has not heard of.
  virtual uint32_t settled_memory_nodes() const { return memory_nodes(); }
  uint64_t pages();  // of all memory nodes
  // 0: there is no such memory node, or it cannot be reached from here.
  uint64_t pages(MemoryNodeId n) { return reach(n).ok() ? places_[n.value].pages : 0; }
  // Whether there is such a page; any number may be asked for.  kNotFound; kCorrupt, kSystem: its memory node is there
  // and cannot be reached from here.
  Status look_for(PageId p) {
    if (p.raw >> 48 != 0) return Errc::kNotFound;
    GCL_TRY(reach(p.node()));
    return p.number() < places_[p.node().value].pages ? Status() : Errc::kNotFound;
  }
  bool has(PageId p) { return look_for(p).ok(); }
  // Where a memory node has its words and pages, for a process that looks at all of them.  Errors as look_for().
  Result<PagePlaces> places(MemoryNodeId n) {
    GCL_TRY(reach(n));
    return PagePlaces(places_[n.value]);
  }
  uint32_t nodes_max() const { return facts_.nodes_max; }
  uint64_t pool_id() const { return facts_.pool_id; }  // random; written into what refers to this pool
  virtual uint64_t saves() const = 0;                  // of durable copies
  const char* path() const { return path_; }           // the names of a node's own files begin so, too
  const char* durable_path() const { return durable_path_[0] ? durable_path_ : nullptr; }

  // REQUIRES: has(p), asked by this node.
  PoolAddress page_address(PageId p) { return places_of(p).page(p.number()); }
  PoolAddress latch_address(PageId p) { return places_of(p).word(p.number()); }
  // The word as it is now; for views, tests and tools.
  virtual LatchWord peek_latch(PageId p) = 0;
  // For views.  Asks its daemon, and waits for the answer, some seconds at most.  kNotFound: it has none, as memory of
  // this machine has; kUnreached, kInterrupted, kSystem: no answer.  The address is set in any case.
  virtual Status figures(MemoryNodeId, MemoryNodeFigures*, Interrupts&, Problem*) { return Errc::kNotFound; }

 protected:
  explicit Pool(const PoolFiles&);
  struct Facts {  // as the pool was made
    uint32_t nodes_max = 0;
    uint64_t pool_id = 0;
    RegionExtent region[kRegionsMax];
  };
  void set_facts(const Facts& facts) { facts_ = facts; }
  // Of a memory node that is not known yet: calls set_places().  kNotFound: the pool has no such one; kCorrupt,
  // kSystem.
  virtual Status find_memory_node(MemoryNodeId, Problem*) = 0;
  void set_places(MemoryNodeId n, const PagePlaces& places) {
    places_[n.value] = places;
    known_[n.value].store(true, std::memory_order_release);  // pairs with knows()
  }
  // Ends the process if it cannot be found: a batch cannot be left undone.
  void must_find(MemoryNodeId) noexcept;

 private:
  bool knows(MemoryNodeId n) const noexcept { return known_[n.value].load(std::memory_order_acquire); }
  Status reach(MemoryNodeId n) {
    if (n.value < kMemoryNodesMax && knows(n)) return {};
    Problem ignored;
    return find_memory_node(n, &ignored);
  }
  const PagePlaces& places_of(PageId p) {
    if (!knows(p.node())) must_find(p.node());  // another process of the node asked for the page
    return places_[p.node().value];
  }

  Facts facts_;
  PagePlaces places_[kMemoryNodesMax];  // of those that are known
  std::atomic<bool> known_[kMemoryNodesMax] = {};
  char path_[512] = "";
  char durable_path_[512] = "";
};

}  // namespace coherence
