// Sequence: one page of the pool that says how far a sequence has come; values are leased from it by nodes, a range at
// a time, and handed out by the node's LeaseTable.  Outside of transactions: a rollback returns nothing.
//
// sequence.mover-owns-values: A value belongs to the node that moved the page's word over it, under the page's
//     exclusive latch.  So no two nodes have the same value, unless set() moved the word back.
// sequence.set-ends-leases: set() begins a new generation (a page's version, which never comes twice, also not when the
//     page is freed and is another sequence's).  Every call reads the word first: what is left of leases of former
//     generations is never handed out by a call that begins after set() has returned.
// sequence.lease-under-latch: A lease is made, and put into the table, under the latch: sessions of a node that find
//     the last one used up at the same time lease once.
// sequence.leased-before-used: What the page says of a lease, and of set(), is in the pool's redo before a value of it
//     is handed out: no commit sees to that.
// sequence.lease-share-bounded: What is leased beyond `cache` is at most a 64th of what is left: the last values are
//     not lost in leases of nodes that do not use them.  A sequence that cycles leases `cache` values: a value comes
//     again only after all others.
//
//   Sequence sequence(pool, session, table, page);
//   SequenceRun run = *sequence.take(rules);             // most calls: one read of a page that is cached here
//   if (run.count == 0) run = *sequence.lease(rules);    // a change of the pool
//   if (run.count == 0) ...                              // the end is reached
#pragma once

#include "bufmgr/buffer_pool.hpp"
#include "coherence/base/result.hpp"
#include "extension/engine/sequence/lease_table.hpp"

namespace engine {

struct SequenceRules {
  int64_t increment, min, max;  // min <= max, increment != 0
  uint64_t cache;               // values a session takes at a time, at least 1
  bool cycle;
};

struct SequenceState {
  int64_t last;
  bool called;  // false: `last` has not been handed out yet and is the next one
};

inline constexpr uint64_t kSequenceLease = 32;  // values, if there are enough

class Sequence {
 public:
  Sequence(bufmgr::BufferPool& pool, bufmgr::Session& session, LeaseTable& leases, coherence::PageId page)
      : pool_(pool), session_(session), leases_(leases), page_(page) {}

  static coherence::Result<coherence::PageId> create(bufmgr::BufferPool&, bufmgr::Session&, SequenceState);
  // The same on a fresh page.  After kInterrupted, call again.
  static coherence::Status create_at(bufmgr::BufferPool&, bufmgr::Session&, coherence::PageId, SequenceState);
  // Together with `note`.  After kInterrupted, call again.
  static coherence::Status drop(bufmgr::BufferPool&, bufmgr::Session&, coherence::PageId,
                                bufmgr::SpaceNote* note = nullptr);

  // Up to rules.cache values of what this node has leased; count 0: nothing.
  coherence::Result<SequenceRun> take(const SequenceRules& rules);
  // The same, leasing if nothing is left; count 0: the sequence has come to its end and does not cycle.
  coherence::Result<SequenceRun> lease(const SequenceRules& rules);
  coherence::Status set(SequenceState state);
  // No value beyond it has been handed out.  Exact while the newest lease is this node's; the end of that lease
  // otherwise.
  coherence::Result<SequenceState> read();

 private:
  struct Word;
  coherence::Result<Word> read_word();
  static coherence::Result<Word> word_of(const bufmgr::ExclusiveGuard& page);

  bufmgr::BufferPool& pool_;
  bufmgr::Session& session_;
  LeaseTable& leases_;
  coherence::PageId page_;
};

}  // namespace engine
