// Membership on one machine: the node table in the pool's file, its lock file, and the locks of the arenas' files.
#pragma once

#include <optional>

#include "coherence/member/membership.hpp"
#include "coherence/region/pool_lock.hpp"
#include "coherence/region/table_changes.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"

namespace coherence {

class ShmMembership final : public Membership {
 public:
  explicit ShmMembership(MappedPool& pool)
      : pool_(pool), table_(pool.table()), changes_(pool.table(), pool.nodes_max()) {}
  uint32_t nodes_max() const noexcept override { return pool_.nodes_max(); }
  NodeInfo info(NodeId node) const noexcept override { return changes_.info(node); }
  uint64_t view() const noexcept override { return changes_.view(); }
  const std::atomic<uint32_t>& fence_word() const noexcept override { return table_.fence; }
  bool repairs_deaths() const noexcept override { return table_.repairs_deaths(); }
  void fence(const char* reason) noexcept override { changes_.fence(reason); }
  const char* fence_reason() const noexcept override { return changes_.fence_reason(); }
  bool watch(uint64_t now_ns) noexcept override;
  NodeSet repairable() const noexcept override { return changes_.repairable(); }
  NodeSet unrecorded() const noexcept override { return changes_.unrecorded(); }
  bool recorded(NodeId dead, uint64_t incarnation) noexcept override;
  bool quiesced(NodeId dead) noexcept override;
  bool swept(NodeId dead, uint64_t incarnation) noexcept override;
  bool drained(NodeId dead) noexcept override;
  Status begin_change(Patience, Problem*) override;
  void end_change() noexcept override { lock_.reset(); }
  NodeSet all_dead() noexcept override;
  void forget(NodeSet dead) noexcept override;
  Result<uint64_t> reserve(NodeId, Problem*) override;
  Status publish(int arena, Problem*) override;
  Result<bool> withdraw(Problem*) override;
  Status close(Problem* problem) override { return pool_.close(problem); }
  void begin_leaving() noexcept override { changes_.begin_leaving(id_); }
  void give_up() noexcept override;

 private:
  NodeEntry& own() const noexcept { return table_.node[id_.value]; }

  MappedPool& pool_;
  NodeTable& table_;
  TableChanges changes_;
  std::optional<PoolLock> lock_;
  NodeId id_;  // as reserved
  uint64_t incarnation_ = 0;
  int arena_ = -1;  // locked (node.locked-while-alive)
};

}  // namespace coherence
