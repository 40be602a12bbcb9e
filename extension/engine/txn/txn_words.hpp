// TxnWords: where the transaction words lie in the pool (Region::kTxnWords and Region::kStatusLog).  Zeroed at pool
// creation, and zero means "never used" everywhere, so there is nothing to format.
//
// Region::kTxnWords
//      0  clock
//     64  bounds      u64 per node: no session of the node has, or will take, a snapshot below it; 0: does not count
//    640  sleepers    NodeSet: nodes whose member worker publishes nothing until it is woken (txn.sleepers-are-woken)
//   1024  per node, 64 bytes each:
//          0 reserved      ids up to here may have been assigned
//          8 low_water     ids up to here have no word in the ring any more (txn.mark-before-clearing)
//         16 aborted_count ids at or below frozen that were aborted
//         24 aborted_head  raw page id + 1 of the first list page; 0: none
//         32 frozen        ids up to here have no word anywhere: listed as aborted, or committed for all
//         40 overflow_root raw page id + 1 of the words of those between; 0: never any, and frozen is not set
//         48 reclaim_root raw page id + 1 of its list of what is made and dropped; 0: there never was any (../reclaim)
//         56 swept        ids up to here that were aborted are forgotten: nothing names one (txn.forget-unnamed-ids)
//   then  watch       u64 per node and session: the nodes to wake when the session's transaction ends
//   then  session_lock u64 per node and session: the token of the lock it has; 0: none (txn.session-lock-token)
//                     (from kSessionsMax on, where no session is:) hold: HoldWord of session number - kSessionsMax
//   then  speculation u64 per node and session: the row that it may still take back (txn.speculation-names-row)
//   then  host_xid    u64 per node and session: of the transaction that it prepared last: HostXidWord
// Region::kStatusLog
//   per node a ring of `slots` status words; id `s` is at s % slots
#pragma once

#include <cstdint>

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

// Links to pages, in words and pages that begin as zeros: raw page id + 1; 0 is none.
constexpr coherence::PageId linked_page(uint64_t link) {
  return link == 0 ? coherence::PageId{} : coherence::PageId{link - 1};
}
constexpr uint64_t link_to(coherence::PageId page) { return page.raw + 1; }

// Whose holds of a session's transactions others wait for, and whether its node has given them up
// (serializable.want-then-look).  Its sequence only grows, until the node has died.
struct HoldWord {
  uint64_t raw = 0;
  static constexpr HoldWord wanted(TxnId id) { return {id.sequence() << 1}; }
  static constexpr HoldWord given(TxnId id) { return {id.sequence() << 1 | 1}; }
  constexpr uint64_t sequence() const { return raw >> 1; }
  constexpr bool operator==(const HoldWord&) const = default;
};

class TxnWords {
 public:
  TxnWords(bufmgr::RegionSpan words, bufmgr::RegionSpan log, uint32_t nodes, uint32_t slots_max)
      : words_(words.at), log_(log.at), nodes_(nodes) {
    uint64_t slots = log.bytes / 8 / nodes;
    slots_ = uint32_t(slots < slots_max ? slots : slots_max);
    VERIFY(slots_ >= 64 && words.bytes > watch_from(nodes));
    sessions_ = uint32_t((words.bytes - watch_from(nodes)) / kBytesPerSession / nodes);
  }
  uint32_t slots() const { return slots_; }
  uint32_t sessions() const { return sessions_; }
  uint32_t nodes() const { return nodes_; }

  coherence::PoolAddress clock() const { return words_; }
  coherence::PoolAddress bounds() const { return words_ + 64; }
  coherence::PoolAddress bound(NodeId n) const { return bounds() + n.value * 8u; }
  coherence::PoolAddress sleepers() const { return words_ + 640; }
  coherence::PoolAddress reserved(NodeId n) const { return words_ + (1024 + n.value * 64u); }
  coherence::PoolAddress low_water(NodeId n) const { return reserved(n) + 8; }
  coherence::PoolAddress aborted_count(NodeId n) const { return reserved(n) + 16; }
  coherence::PoolAddress aborted_head(NodeId n) const { return reserved(n) + 24; }
  coherence::PoolAddress frozen(NodeId n) const { return reserved(n) + 32; }
  coherence::PoolAddress overflow_root(NodeId n) const { return reserved(n) + 40; }
  coherence::PoolAddress reclaim_root(NodeId n) const { return reserved(n) + 48; }
  coherence::PoolAddress swept(NodeId n) const { return reserved(n) + 56; }
  coherence::PoolAddress watch(NodeId n, coherence::SessionId s) const {
    VERIFY(n.value < nodes_ && s.value < sessions_);
    return words_ + (watch_from(nodes_) + (uint64_t{n.value} * sessions_ + s.value) * 8);
  }
  coherence::PoolAddress session_lock(NodeId n, coherence::SessionId s) const {
    return watch(n, s) + uint64_t{nodes_} * sessions_ * 8;
  }
  // No session has a number so high; a survivor clears these words with the locks of a node that died.
  coherence::PoolAddress hold(NodeId n, coherence::SessionId s) const {
    VERIFY(s.value < coherence::kSessionsMax);
    return session_lock(n, {uint16_t(coherence::kSessionsMax + s.value)});
  }
  coherence::PoolAddress speculation(NodeId n, coherence::SessionId s) const {
    return session_lock(n, s) + uint64_t{nodes_} * sessions_ * 8;
  }
  coherence::PoolAddress host_xid(NodeId n, coherence::SessionId s) const {
    return speculation(n, s) + uint64_t{nodes_} * sessions_ * 8;
  }
  coherence::PoolAddress status(TxnId id) const {
    VERIFY(id.node().value < nodes_);
    return log_ + (uint64_t{id.node().value} * slots_ + id.sequence() % slots_) * 8;
  }

 private:
  static_assert(64 + coherence::kNodesMax * 8 <= 640);
  static constexpr uint64_t kBytesPerSession = 32;  // watch, session lock, speculation, host xid
  static constexpr uint64_t watch_from(uint32_t nodes) { return 1024 + nodes * 64u; }
  coherence::PoolAddress words_, log_;
  uint32_t nodes_, slots_, sessions_;
};

}  // namespace engine
