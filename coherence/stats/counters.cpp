#include "coherence/stats/counters.hpp"

namespace coherence {

const char* counter_name(Counter c) noexcept {
  static constexpr const char* kNames[] = {
      "batches",
      "reads",
      "writes",
      "cas",
      "faa",
      "loads",
      "bytes_read",
      "bytes_written",
      "miss_shared",
      "miss_exclusive",
      "upgrades",
      "upgrade_fallbacks",
      "peer_rd_sent",
      "peer_wr_sent",
      "peer_inv_sent",
      "peer_rd_received",
      "peer_wr_received",
      "peer_inv_received",
      "grant_s_sent",
      "grant_m_sent",
      "done_sent",
      "dropped_sent",
      "grant_s_received",
      "grant_m_received",
      "done_received",
      "dropped_received",
      "evict_clean",
      "evict_dirty",
      "write_backs",
      "parked",
      "flush_waits",
      "served_by_unlocker",
      "served_by_worker",
      "local_waits",
      "peer_waits",
      "abandoned",
      "stood_back",
      "copy_sent",
      "copy_received",
      "held_sent",
      "held_received",
      "resend_waits",
      "outdated",
      "overlapped",
      "repairs",
      "awaited",
  };
  static_assert(sizeof kNames / sizeof kNames[0] == kCounters);
  return kNames[int(c)];
}

}  // namespace coherence
