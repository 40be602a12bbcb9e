// Reclaimer: decides what stands in the reclaim lists, and frees what no session can name any more.
//
// reclaim.freed-in-steps: Freeing is done by a process that has nothing else to do in time, step by step; between steps
//     it may stop for good.  Nothing is remembered but in the pool: another process, a later incarnation or another
//     node goes on.
// reclaim.others-while-away: A node's list is worked at by the node, and by others while it is away; one at a time, the
//     one that has its lock.
// reclaim.freed-at-once: Pages are freed at once when the status log has decided.  Locks of the host, not time, keep
//     away the sessions that could still name the relation: a relation is dropped under an exclusive lock on every
//     node, which ends there after the catalogs say that it is gone; a relation that was made is known to its
//     transaction alone, and that is over.
//
//   Reclaimer reclaimer(txns);
//   while (*reclaimer.step()) {...}                 // then sleep; a later step may find more
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "extension/engine/reclaim/reclaim_list.hpp"

namespace engine {

class Reclaimer {
 public:
  explicit Reclaimer(TxnSystem& txns) : txns_(txns) {}
  // Frees an extent's worth of pages at most, or goes through one page of a list.  False: there is nothing to do now.
  // After an error, call again.
  Result<bool> step();
  // Why pages of a relation could not be freed, since last asked: they are lost.
  std::optional<Errc> take_failure() { return std::exchange(failure_, std::nullopt); }

  // Of the session's own node, as last seen.
  uint64_t open_records() const { return open_; }

  // Whether pages are to be freed that are not yet, by whomever.
  static Result<bool> due_anywhere(TxnSystem& txns);

 private:
  struct Findings {
    uint32_t records = 0;
    bool due = false;  // something is decided
    std::vector<uint32_t> forget;
    std::optional<uint32_t> free;  // the first
  };
  struct Job {
    PageId list;
    uint32_t place;
    ReclaimRecord record;
  };
  static Result<Findings> examine(TxnSystem& txns, const ReclaimPage& page);
  static Result<bool> due(TxnSystem& txns, NodeId node, uint64_t* records = nullptr);
  Result<bool> choose_list();
  Result<bool> work_on_page();
  Result<bool> pass_page(const ReclaimPage& page, bool empty);
  Result<bool> close_page();
  Status forget(const std::vector<uint32_t>& places, const ReclaimPage& seen);
  Result<bool> free_some();
  Result<bool> free_part();

  TxnSystem& txns_;
  std::optional<NodeId> list_;  // locked
  PageId at_, before_;          // the page of it, and its predecessor; no predecessor: it is the root
  std::optional<Job> job_;
  std::optional<Errc> failure_;
  uint64_t open_ = 0;
};

}  // namespace engine
