// HeapCheck: a table's blocks and its rows' history, while sessions change them.
//
//   HeapCheck check(txns, relation, snapshot, columns);
//   check.maps().check(findings);
//   for (uint32_t i = 0; i < check.maps().blocks().size(); ++i) check.check_block(i, findings);
//   check.check_entry(tid, place, findings);          // for each entry of each index
//
// REQUIRES: the session counts for the horizon with a snapshot not younger than `snapshot` from before the first call
// until after the last one: what the snapshot may see stays where it is (heap.dead-pointers-wait), and ids that were
// read keep their statuses (sweep.forget-after-readers).  No user code runs; kInterrupted: call again.
#pragma once

#include "extension/engine/check/map_check.hpp"

namespace engine {

class HeapCheck {
 public:
  HeapCheck(TxnSystem& txns, RelationId relation, const Snapshot& snapshot, uint16_t attributes)
      : txns_(txns),
        relation_(relation),
        snapshot_(snapshot),
        attributes_(attributes),
        limits_(txns),
        maps_(txns, relation) {}

  MapCheck& maps() { return maps_; }
  TxnLimits& limits() { return limits_; }

  // All that rules.md says of a block, of the i-th one that is in use.
  Status check_block(uint32_t i, Findings& findings);
  // The block that was checked last, as it was; rows whose line pointers are no good are told of, and not to be used.
  const std::byte* block_bytes() const { return copy_; }
  uint32_t block() const { return block_; }
  FindingPlace line_at(uint16_t line) const { return {page_, block_, line}; }
  uint16_t lines() const { return line_count_; }
  bool usable(uint16_t line) const { return line_count_ >= line && history_[line].known; }
  // (check.entry-has-row) an entry of an index that was read while the session counted.
  Status check_entry(Tid tid, const FindingPlace& at, Findings& findings);

 private:
  // What is known of a row version's two transactions.  The ender was asked first (check.ended-was-made).
  struct History {
    RowHeader row;
    bool known = false;  // its words make sense
    std::optional<TxnStatus> creator, deleter;
    bool never() const { return row.creator.kind() == RowTxnKind::kAborted || (creator && creator->aborted()); }
  };
  Status learn(uint16_t line, Findings& findings);
  Status learn_deleter(uint16_t line, Findings& findings);
  Status learn_creator(uint16_t line, Findings& findings);
  Status status_of(TxnId id, uint16_t line, const char* what, std::optional<TxnStatus>* status, Findings& findings);
  void check_order(uint16_t line, Findings& findings);
  Status check_chain(uint16_t root, Findings& findings);
  Status check_step(uint16_t line, uint16_t* next, Findings& findings);
  Status check_link(uint16_t line, Findings& findings);
  Result<bool> find_block(uint32_t block, PageId* page);

  TxnSystem& txns_;
  RelationId relation_;
  Snapshot snapshot_;
  uint16_t attributes_;
  TxnLimits limits_;
  MapCheck maps_;
  // The block at hand.
  PageId page_;
  uint32_t block_ = 0;
  uint16_t line_count_ = 0;  // lines of which history_ knows
  alignas(8) std::byte copy_[coherence::kPageSize];
  History history_[kLinesMax + 1];
  uint16_t root_[kLinesMax + 1];  // of the chain that has come to the version; 0: none yet
};

}  // namespace engine
