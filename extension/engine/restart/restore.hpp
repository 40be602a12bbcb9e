// The words of a pool that memory has lost: out of its durable copy, and of what every node's log says.  The driver
// loads the copy, has read_copy() read it, has redo applied to the page images, and then calls restore().
//
// restart.alone: One process works, as a node that no primary ever is, and no other node is in the pool.
// restart.begun-anew: Nothing here is done in steps that a crash may come between: a restart that dies in the middle
//     begins anew, from the copy.  So what is not needed is freed first, and room found where it was.
//
//   auto copy = read_copy(txns);                                     // then leave; then redo; then join again
//   auto done = restore(pool, session, words, *copy, evidence);
#pragma once

#include <span>
#include <vector>

#include "extension/engine/restart/commit_evidence.hpp"
#include "extension/engine/restart/statuses_of_copy.hpp"

namespace engine {

// What a restart has made of a node's words, for its driver to tell.
struct RestoredNode {
  uint64_t reserved = 0;  // ids up to here are final
  uint64_t aborted = 0;   // of these, as listed
};

// `evidence` of each node, by its id; null: there is no log of that node, and its words stay as they are.  REQUIRES:
// restart.alone; the pages are as all logs leave them, the words as the copy has them.  kNoSpace: the pool has no room
// for the lists of aborted ids; kCorrupt: a page or word is none.
coherence::Result<std::vector<RestoredNode>> restore(bufmgr::BufferPool& pool, bufmgr::Session& session,
                                                     const TxnWords& words, const StatusesOfCopy& copy,
                                                     std::span<const CommitEvidence* const> evidence);

}  // namespace engine
