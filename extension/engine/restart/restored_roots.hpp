// The words that lead to the reclaim lists and to the DDL log.
//
// restart.root-is-best: A root's page is made before the word that leads to it is set, and two sessions may each make
//     one.  So where the copy has no word, the root is the page that is one and has most: of records in its chain, or
//     of entries.  The others are freed if they have none.
#pragma once

#include "extension/engine/restart/found_pages.hpp"

namespace engine {

// REQUIRES: as find_pages(), which has made `found`.  kCorrupt: a word leads to a page that is no such root.
coherence::Status restore_roots(bufmgr::BufferPool& pool, bufmgr::Session& session, const TxnWords& words,
                                const FoundPages& found);

}  // namespace engine
