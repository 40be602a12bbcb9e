// SampleRegistry: what each primary says of itself about once a second, for the views of all the others: a place for
// each in Region::kSamples.
//
// samples.nothing-waits: Nothing is asked and nothing waits: a reader finds what a node said last, and its age.  A node
//     that is stopped says nothing new; a node that has left, nothing at all.
// samples.sample-read-whole: A sample is read whole or not at all: its version is odd while it is written, the same
//     before and after a read.
// samples.counters-by-place: Counters are named by their place.  A sample of another build, with other places, is not
//     shown.
//
//   one worker of each node:  registry.publish(sample);          at the end: registry.clear();
//   anybody:                  if (registry.read(node, incarnation, &sample)) ...
#pragma once

#include <cstdint>

#include "bufmgr/buffer_pool.hpp"
#include "coherence/stats/counters.hpp"
#include "coherence/stats/hot_pages.hpp"

namespace engine {

inline constexpr uint32_t kSampleHotPages = 10;
inline constexpr uint32_t kSampleTextBytes = 256;

enum class DdlStanding : uint32_t { kStarting, kServing, kCatchingUp, kFailing };

struct Sample {
  static constexpr uint64_t kFormat =
      uint64_t{1} << 32 | uint64_t(coherence::kCounters) << 16 | uint64_t(bufmgr::kCounts);
  uint64_t format = kFormat;
  uint64_t incarnation = 0;
  int64_t taken_us = 0;  // by the clock of the host
  // Since the node joined, summed over all processes it had.
  uint64_t coherence[coherence::kCounters]{};
  uint64_t bufmgr[bufmgr::kCounts]{};
  // Now.
  uint32_t frames = 0, free_frames = 0;
  uint64_t ring_used = 0, ring_bytes = 0;
  uint64_t status_used = 0, status_words = 0;
  uint64_t aborted = 0;
  // Of the oldest snapshot of the node, if any; the host's process.
  uint64_t oldest = 0;  // timestamp; 0: none
  int64_t oldest_since_us = 0;
  uint32_t oldest_pid = 0;
  // Where it is in the DDL log, of which primary's DDL it last made what.
  DdlStanding standing = DdlStanding::kStarting;
  uint64_t ddl_entry = 0;          // kCatchingUp: the newest entry it has dealt with
  int64_t error_us = 0;            // 0: there was none
  char error[kSampleTextBytes]{};  // of the last replay that failed; ends with a zero
  uint32_t hot_pages = 0;          // the hottest first
  uint32_t reserved = 0;
  coherence::HotPage hot[kSampleHotPages]{};
};

class SampleRegistry {
 public:
  SampleRegistry(coherence::Memory& memory, bufmgr::RegionSpan region, uint32_t nodes, coherence::NodeId self);

  // REQUIRES: one process of the node at a time.
  void publish(const Sample& sample);
  // Nothing is said any more.  Also first of all in a new incarnation.
  void clear();
  // False: that incarnation has said nothing (yet), or is another build's.  A node that died while it wrote reads so,
  // too.
  bool read(coherence::NodeId node, uint64_t incarnation, Sample* to);

 private:
  coherence::PoolAddress place_of(coherence::NodeId node) const { return at_ + node.value * stride_; }

  coherence::Memory& memory_;
  coherence::PoolAddress at_;
  uint64_t stride_;
  coherence::NodeId self_;
};

}  // namespace engine
