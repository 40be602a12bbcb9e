// MappedPool: the pool of one machine: every process of every node maps its memory nodes, the node table with them.  A
// process that serves it to nodes over a network has memory node 0 alone, and others have the others (PoolKeeper).
//
// pool.mapped-by-its-own: only the shm transport's own files, and tools that run while no node is in the pool, touch
//     what is mapped.  Everything else has a Pool: places, and verbs; members and the fence are Membership's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "coherence/pool/pool.hpp"
#include "coherence/region/pool_journal.hpp"
#include "coherence/region/pool_keeper.hpp"
#include "coherence/transport/shm/memory_map.hpp"

namespace coherence {

class MappedPool final : public Pool, public MemoryMap, public PoolKeeper {
 public:
  ~MappedPool() override;
  // REQUIRES: the pool is one machine's.
  static MappedPool& of(Pool& pool) noexcept;

  NodeTable& table() const override { return *table_; }
  PoolHeader& header(uint32_t k = 0) const { return *reinterpret_cast<PoolHeader*>(mapped(MemoryNodeId{uint8_t(k)})); }

  PoolHeader& first_header() const override { return header(); }
  Status mark_in_use(Problem*) override;
  Status write_copy(Problem*) override;
  Status count_copy(Problem*) override;
  bool is_unplaced() const override;
  bool is_copy_current() const override;
  Status place_copy(Problem*) override;
  void drop_copy() noexcept override;
  bool has_copy() const override { return durable_path() != nullptr; }
  Status count_memory_node(uint32_t number, uint64_t bytes, uint64_t pages_bytes, Problem* problem) override {
    return count_memory_node(number, bytes, pages_bytes, PoolJournal::kTry, problem);
  }
  Status count_memory_node(uint32_t number, uint64_t bytes, uint64_t pages_bytes, PoolJournal::Patience, Problem*);
  // Of all memory nodes, whose files are this machine's: behind the last node the pool is clean, and saved if it has a
  // durable copy.
  Status close(Problem*);

  Status check_protocol(Problem*) const override;
  uint32_t memory_nodes() const override;
  uint64_t saves() const override;
  LatchWord peek_latch(PageId p) override;

 private:
  friend class LocalPool;  // makes, opens and restarts it
  using MemoryMap::mapped;
  explicit MappedPool(const PoolFiles& files) : Pool(files) {}
  // Maps memory node 0; the others.  REQUIRES: memory node 0's header was checked.
  Status map_first(Problem*);
  Status map_others(Problem*);
  Status map_part(uint32_t k, Problem*);
  Status find_memory_node(MemoryNodeId, Problem*) override;
  std::byte* map_late(MemoryNodeId) noexcept override;
  // To the durable path.  REQUIRES: no node in it, the lock file held.
  Status save(Problem*);
  Status replace_saved(uint32_t from, Problem*);
  Status end_placing(Problem*);
  Result<bool> is_of_last_save(const char* copy, Problem*) const;
  void remove_uncounted() const;  // REQUIRES: the lock file held

  uint64_t bytes_[kMemoryNodesMax] = {};  // of those that are mapped; set before their bases
  std::atomic<uint32_t> late_spin_ = 0;
  NodeTable* table_ = nullptr;
  int served_ = -1;  // locked (LocalPool::serve)
};

}  // namespace coherence
