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
  struct Image {
    alignas(8) std::byte bytes[coherence::kPageSize] = {};
  };
  using Images = std::map<uint64_t, std::unique_ptr<Image>>;  // by raw page ids; others are zeros
  // What a restart makes: out of the checkpoint, or of nothing but logs.  False: it objects, `why` says of what.
  bool restart(const std::vector<NodeLog>& logs, bool from_checkpoint, Random&, Images* to, coherence::Problem* why);
  uint64_t checkpoints() const { return checkpoints_; }
  uint64_t restarts() const { return restarts_; }

 private:
  class Log;
  class Ring;
  class Pages;
  struct Progress {
    uint64_t position[coherence::kNodesMax] = {};             // of each log
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> rings;  // bytes of each death's, by node and incarnation
    Images images;
  };
  // Reads each log up to `until`, from where `progress` has come to.
  coherence::Result<uint32_t> merge(const std::vector<NodeLog>& logs, const std::vector<uint64_t>& until, bool certain,
                                    Progress* progress, coherence::Problem*);
  std::vector<const recovery::Death*> deaths() const;
  static Images copy_of(const Images& images);
  std::vector<uint64_t> read_up_to(const std::vector<NodeLog>& logs, Random&) const;

  recovery::History journal_;
  Progress checkpoint_;
  uint64_t synced_[coherence::kNodesMax] = {};  // of each log, by checkpoints
  uint64_t checkpoints_ = 0, restarts_ = 0;
};

}  // namespace sim
