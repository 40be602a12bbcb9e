// PoolCluster: each node is a whole buffer pool of the product, with a log, the two workers and users.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/node_shared.hpp"
#include "cluster.hpp"
#include "late_log.hpp"
#include "pool_disk.hpp"
#include "recovery/page_sweep.hpp"
#include "recovery/ring_repair.hpp"

namespace sim {

// Where a page says its value: before and behind the gap that copy_parts() leaves out.
inline constexpr uint32_t kValueAt[] = {bufmgr::kPageBody, 2048, 4104, 8184};
inline constexpr int kValues = 4;
inline constexpr uint16_t kLower = 2056, kUpper = 4096;  // the gap's
inline constexpr uint32_t kHintAt = 1024;
// The values before, the newest first: each change moves them on by one place.
inline constexpr uint32_t kFormerAt = 1280;
inline constexpr int kFormer = 64;

// The product's, where a node may die right after it has taken a page over, and redo may be broken on purpose.
class PoolRedo final : public PageRepair {
 public:
  PoolRedo(bufmgr::BufferPool& pool, int& crashes) : rings(pool), crashes_(crashes) {}
  Result<bool> repair(PageId, std::byte* page, NodeSet dead, Memory&, Problem*) noexcept override;
  recovery::RingRepair rings;

 private:
  int& crashes_;  // still to come
};

// One node, over its lives.
struct PoolMember {
  explicit PoolMember(int number) : id{uint8_t(number)} {}
  coherence::Node& node() const { return pool->coherence_node(); }
  bufmgr::NodeShared& shared() const { return *reinterpret_cast<bufmgr::NodeShared*>(node().private_memory()); }

  NodeId id;
  LateLog log;
  std::unique_ptr<bufmgr::BufferPool> pool;                 // of this life
  std::vector<std::unique_ptr<bufmgr::BufferPool>> former;  // their memory may still be looked at
  std::unique_ptr<PoolRedo> redo;                           // of this life
  std::unique_ptr<recovery::PageSweep> sweep;
  int users = 0;             // at work
  uint32_t calls_heard = 0;  // calls for the page provider before its last sleep
  bool serving = false, providing = false, sweeping = false, stopping = false, left = false, last = false;
};

class PoolCluster final : public Observer {
 public:
  explicit PoolCluster(const Options&);
  ~PoolCluster() override;
  PoolCluster(const PoolCluster&) = delete;

  // As Cluster's.
  void start();
  bool working() const;
  bool serving() const;
  void close() { closing_ = true; }
  bool crashed(int n) const { return scheduler()->crashed(n); }
  bool withdrawn(int n) const { return members_[0]->node().info(NodeId{uint8_t(n)}).state == MemberState::kAbsent; }
  bool repaired() const;
  const Deaths& deaths() const { return deaths_; }
  bool fenced() const { return members_[0]->pool->fenced(); }
  bool at_rest() const;  // and no page provider sleeps through a call
  void check_rest() const;
  void check_left();
  void check_refuses() const;
  void check_waits();
  uint64_t count(Counter) const;
  std::vector<uint64_t> buffer_counts() const;  // bufmgr's, over all nodes and lives
  Oracle& oracle() { return oracle_; }
  uint64_t longest_wait_ns() const { return 0; }
  const PoolDisk& disk() const { return disk_; }

 private:
  friend class PoolUser;
  struct Waiting {
    uint64_t since = 0;  // 0: does not
  };
  bufmgr::NodeOptions node_options(NodeId) const;
  bufmgr::ArenaPlan plan_of(const PoolMember&) const;  // what lies where in its node's private memory
  // A change that may not have taken place, should its node die: its redo may not be readable.
  struct Change {
    int node;
    uint64_t version, value, before;
  };
  bool join(PoolMember&);
  void start(PoolMember&);
  void died(PoolMember&);
  void rejoin(PoolMember&);
  void record_deaths(PoolMember&);
  // For a node that leaves, whose sweep has ended (node.leaver-records).
  class Recorder final : public coherence::DeathRecorder {
   public:
    Recorder(PoolCluster& cluster, PoolMember& member) : cluster_(cluster), member_(member) {}
    void record() noexcept override { cluster_.record_deaths(member_); }

   private:
    PoolCluster& cluster_;
    PoolMember& member_;
  };
  void sweep(PoolMember&);
  bool unnamed(bufmgr::Session&, NodeId dead);
  void take_back(int node);
  void record(PoolMember&);
  std::vector<bufmgr::RecordPage> in_ring(int node);  // that can be read after its death
  void changes(int page, uint64_t value, uint64_t before);
  void employ(PoolMember&, int operations);  // users and the page provider of a life
  void serve(PoolMember&, int lives);
  bool stop_provider(PoolMember&, bufmgr::Session&);
  void write_log(PoolMember&);
  void lose_memory();  // now and then, while the nodes work
  void make_checkpoints();
  bool make_checkpoint(Random& chance, CheckpointStep* last);
  std::vector<PoolDisk::NodeLog> logs_of_all();
  void arm_others();
  void check_restart(Random& chance, bool all_have_left);
  PoolDisk::NodeLog log_of(PoolMember&);
  uint64_t value_at(int page, uint64_t version) const;
  void disturb();
  void check_frames(const PoolMember&) const;
  void about_to(const Op&) override;
  void linger_before(const Op&);
  int page_of(const LineState&) const override;
  FaultPoint point_of(const volatile void*) const override;
  FaultPoint point_of(const Batch&, int op) const override;
  Phases phases() const override;
  bool is_targeted() const { return options_.target.at != FaultPoint::kElsewhere; }
  bool lives(const PoolMember& m) const { return !crashed(m.id.value); }
  PageId id(int page) const { return pages_[size_t(page)]; }
  int index_of(PageId) const;

  const Options& options_;
  std::string path_;
  std::vector<PageId> pages_;  // in their order
  std::vector<uint64_t> versions_;
  std::vector<std::vector<uint64_t>> former_;  // values of each page
  std::vector<std::vector<Change>> changes_;   // of each page, since another node changed it
  std::vector<std::unique_ptr<PoolMember>> members_;
  std::vector<std::unique_ptr<Waiting>> waiting_;  // of each user
  Chance never_{0};
  Oracle oracle_;
  bool closing_ = false;
  uint64_t fenced_ns_ = 0;
  Deaths deaths_;
  int crashes_in_repair_;
  size_t taken_back_ = 0;  // changes
  PoolDisk disk_;
};

}  // namespace sim
