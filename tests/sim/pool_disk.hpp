// PoolDisk: what of a cluster of buffer pools is on disks, and what the product's restart makes of that when memory is
// lost.  A loss is played and nothing happens to the cluster: it may be played at any moment.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "coherence/base/ids.hpp"
#include "late_log.hpp"
#include "random.hpp"
#include "recovery/log_merge.hpp"
#include "recovery/restart_journal.hpp"

namespace sim {

// What a process that makes a checkpoint has done.  It may die behind each.
enum class CheckpointStep : uint8_t {
  kHolesRead,      // of all rings (recovery.certain-below-hole)
  kLogsRead,       // up to some place, and applied
  kImagesWritten,  // where no image of the one before lies
  kLogsSynced,
  kReplaced,  // it is the one that counts
  kRingsDropped,
  kCount,
};
const char* checkpoint_step_name(CheckpointStep);

class PoolDisk {
 public:
  struct NodeLog {
    LateLog* log;
    uint64_t hole;  // of its ring, now
  };
  void joined(coherence::NodeId, uint64_t incarnation, uint64_t first_sequence);
  // Its process is gone: of its log the machine has what was flushed, and perhaps more.
  void lose_process(coherence::NodeId, LateLog&, Random&) const;
  // Before anybody repairs: `framed`, what its ring has up to the hole.
  void died(coherence::NodeId, uint64_t incarnation, uint64_t first_sequence, std::span<const std::byte> framed);

  // The logs as they are now, some further than their nodes have flushed them.
  void make_checkpoint(const std::vector<NodeLog>& logs, Random&);
  // The same in steps, between which the nodes go on.  `holes`: as they were at the first step.
  void begin_checkpoint() { making_ = std::make_unique<Making>(); }
  void make(CheckpointStep, const std::vector<NodeLog>& logs, const std::vector<uint64_t>& holes, Random&);
  void end_checkpoint() { making_.reset(); }
  void kill_checkpoint(CheckpointStep last) { ++killed_[size_t(last)], making_.reset(); }
  bool is_making() const { return making_ != nullptr; }
  struct Image {
    alignas(8) std::byte bytes[coherence::kPageSize] = {};
  };
  using Images = std::map<uint64_t, std::unique_ptr<Image>>;  // by raw page ids; others are zeros
  // What a restart makes: out of the checkpoint, or of nothing but logs.  False: it objects, `why` says of what.
  bool restart(const std::vector<NodeLog>& logs, bool from_checkpoint, Random&, Images* to, coherence::Problem* why);
  uint64_t checkpoints() const { return checkpoints_; }
  uint64_t restarts() const { return restarts_; }
  const std::vector<uint64_t>& killed() const { return killed_; }  // by CheckpointStep

 private:
  class Log;
  class Ring;
  class Pages;
  struct Progress {
    uint64_t position[coherence::kNodesMax] = {};             // of each log
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> rings;  // bytes of each death's, by node and incarnation
    Images images;
  };
  struct Making {
    recovery::History journal;
    Progress progress;
    std::vector<uint64_t> until;
  };
  // Reads each log up to `until`, from where `progress` has come to.
  static coherence::Result<uint32_t> merge(const recovery::History&, const std::vector<NodeLog>& logs,
                                           const std::vector<uint64_t>& until, bool certain, Progress* progress,
                                           coherence::Problem*);
  static coherence::Result<uint32_t> apply(const std::vector<recovery::LogSource*>&, Images*, coherence::Problem*);
  void add(uint32_t kind, std::vector<std::byte> bytes);
  void read_logs(const std::vector<NodeLog>& logs, Random&);
  void replace();
  void drop_rings();
  static Images copy_of(const Images& images);
  static Progress copy_of(const Progress&);
  std::vector<uint64_t> read_up_to(const std::vector<NodeLog>& logs, Random&) const;

  struct Entry {
    uint32_t kind;
    std::vector<std::byte> bytes;
  };
  std::vector<Entry> entries_;  // of the journal
  recovery::History journal_;   // what they say
  Progress checkpoint_;
  std::unique_ptr<Making> making_;
  uint64_t written_[coherence::kNodesMax] = {};  // of each log, as a checkpoint has read it: no process takes that back
  uint64_t synced_[coherence::kNodesMax] = {};   // of each log, by checkpoints
  bool rings_dropped_ = false;                   // no restart does without a checkpoint
  std::vector<uint64_t> killed_ = std::vector<uint64_t>(size_t(CheckpointStep::kCount));
  uint64_t checkpoints_ = 0, restarts_ = 0;
};

}  // namespace sim
