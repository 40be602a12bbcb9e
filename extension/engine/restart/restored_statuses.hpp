// The words and pages that say what became of a node's transactions, made anew.
//
// restart.all-ids-frozen: All ids that may be in use are frozen: those that did not commit are in the aborted list, and
//     there is no word of any.  The ring is as that of a node that never was, all zeros (txn.word-holds-sequence: a
//     place gets its free word before its id is taken).  No snapshot is older than the restart, so nobody asks when one
//     of them committed.
// restart.deaths-tell-ids: What the journal has of a death says up to which id the node may have used: its ring may
//     have rows of ids that its own log, which ended with it before it was flushed, does not know.  So a verdict on the
//     last id that was reserved and not committed is among its verdicts, and each counts as an id that was noted.
// restart.unproven-means-aborted: The list has what a page of a former list names; what the copy says was rolled back;
//     and of the ids above the copy's, and of those that the copy says are in doubt, all that have no evidence of a
//     commit, those that were never used among them.  What the copy says is forgotten (txn.forget-unnamed-ids) is left
//     out.
#pragma once

#include "extension/engine/restart/commit_evidence.hpp"
#include "extension/engine/restart/found_pages.hpp"
#include "extension/engine/restart/statuses_of_copy.hpp"

namespace engine {

// The node's ids that are to be in the list, ascending; `listed` are those that pages name.
std::vector<uint64_t> ids_to_list(const StatusesOfCopy::Node& copy, const CommitEvidence& evidence, uint64_t swept,
                                  std::vector<uint64_t> listed);

// REQUIRES: as find_pages(); the node's former lists and pages of words are freed.  kNoSpace: the pool has no room for
// the list.
coherence::Status restore_statuses(bufmgr::BufferPool& pool, bufmgr::Session& session, const TxnWords& words,
                                   NodeId node, uint64_t reserved, const std::vector<uint64_t>& aborted);

}  // namespace engine
