// What the pool's journal (coherence::PoolJournal) says for a start that has lost the memory: which nodes have joined
// since the last save, and how those ended that died.
//
// journal.joined-before-changes: The entry of a join comes before the incarnation's first change of a page.  It says
//     where in the node's log its records begin, and from which sequence on they count.
// journal.void-behind-hole: Of a node that died, survivors take what its ring has up to the hole; what its log has
//     behind that never happened.  And the ring may have what its log has not.  So the entry of a death has the ring's
//     records, and the hole.
// journal.verdicts-beat-logs: What survivors, an administrator, or a server that is back make of ids that ran or
//     were PREPARED is here before it is done: a node's log may say otherwise, or no longer say it.
// journal.doubts-before-join: What a node's former incarnation left in doubt is decided, and its decision is here,
//     before the node's join is.  From there on a restart asks the node's log what became of its ids, and that may have
//     lost it: a checkpoint had it, and was forgotten by the save that the join follows.
//
//   const auto history = read_history(durable_path, pool_id, saves, &problem);
//   if (history->of(node).counts(sequence)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/region/pool_journal.hpp"
#include "recovery/ring_index.hpp"

namespace recovery {

struct Join {
  coherence::NodeId node;
  uint64_t incarnation = 0;
  uint64_t first_sequence = 0;  // of the redo ring, as this incarnation opened it
  uint64_t log_position = 0;    // in the node's log, not behind the incarnation's first record
};

struct Verdict {
  uint64_t sequence = 0;
  bool committed = false;
};

struct Death {
  coherence::NodeId node;
  uint64_t incarnation = 0;
  uint64_t first_sequence = 0, hole = 0;  // RingIndex
  std::vector<Verdict> verdicts;          // on ids of this node
  std::vector<std::byte> framed;          // RingIndex; empty, if a checkpoint has them (drop_rings)
  uint64_t ring_bytes() const { return hole - first_sequence; }
};

// Of what was in doubt.
struct Decision {
  uint64_t txn = 0;  // raw id
  bool committed = false;
};

// Of a node's data directory, in its server's own terms: a word of the pool, which is set behind the entry.
struct Life {
  coherence::NodeId node;
  uint64_t number = 0;
};

// --- writing: any process that has the pool open; durable when they return ------------------------------------------
// kBusy: with kTry, another process writes; kNoSpace, kSystem.
using Patience = coherence::PoolJournal::Patience;
coherence::Status note_join(coherence::Pool&, const Join&, Patience, coherence::Problem*);
coherence::Status note_death(coherence::Pool&, coherence::NodeId, uint64_t incarnation, const RingIndex&,
                             std::span<const Verdict>, Patience, coherence::Problem*);
coherence::Status note_decision(coherence::Pool&, const Decision&, Patience, coherence::Problem*);
coherence::Status note_life(coherence::Pool&, const Life&, Patience, coherence::Problem*);
// Of each death whose ring a checkpoint has in whole (`in_checkpoint`), the records are not needed any more.  kBusy:
// another process writes; kNoSpace, kSystem, kCorrupt.
coherence::Status drop_rings(const char* durable_path, uint64_t pool_id, uint64_t saves,
                             const std::function<bool(const Death&)>& in_checkpoint, coherence::Problem*);
// Such a death gets its ring again, out of another journal that has it (nullptr: it stays as it is).
coherence::Status put_back_rings(const char* durable_path, uint64_t pool_id, uint64_t saves,
                                 const std::function<const Death*(const Death&)>& with_ring, coherence::Problem*);
// Whether the node has joined since the durable copy was saved.
coherence::Result<bool> has_joined(coherence::Pool&, coherence::NodeId, coherence::Problem*);

// --- reading ---------------------------------------------------------------------------------------------------------
// A node's, since the save.
class NodeHistory {
 public:
  bool joined() const { return !joins_.empty(); }
  // The same of incarnations behind `after`, up to `upto`, which have one log; and where that has their first record,
  // at the earliest.
  bool joined(uint64_t after, uint64_t upto) const;
  uint64_t log_position(uint64_t after, uint64_t upto) const;
  // Whether a record of that sequence has happened since the save.
  bool counts(uint64_t sequence) const;
  std::span<const Death> deaths() const { return deaths_; }
  uint64_t newest_incarnation() const;
  uint64_t newest_joined(uint64_t upto) const;  // 0: none

 private:
  friend struct History;
  std::vector<Join> joins_;  // in order
  std::vector<Death> deaths_;
};

struct History {
  NodeHistory node[coherence::kNodesMax];
  // Of each transaction the last: a process that died noted another one, and did not carry it out: nobody has seen it.
  std::vector<Decision> decisions;
  std::optional<uint64_t> life[coherence::kNodesMax];  // the newest of each node
  bool empty() const;
  coherence::Status add(uint32_t kind, std::span<const std::byte> entry);
};
// kCorrupt: an entry makes no sense; kIncompatible: it is of a kind that is not known; those of PoolJournal::visit().
coherence::Result<History> read_history(const char* durable_path, uint64_t pool_id, uint64_t saves,
                                        coherence::Problem*);

}  // namespace recovery
