// FoundPages: the pages that only words lead to, found by their types.
//
// restart.types-lead-to-pages: Redo makes pages, and no word.  So what words alone lead to is looked for among all
//     allocated pages: a page says what it is and whose, from the mini-transaction on that makes it one, and a page
//     that was freed is zero (space.free-page-zero).
#pragma once

#include <cstdint>
#include <vector>

#include "extension/engine/txn/txn_words.hpp"

namespace engine {

struct FoundPages {
  struct AbortedList {  // of a node, or what is left of several
    std::vector<coherence::PageId> pages{};
    std::vector<uint64_t> sequences{};  // in no order, and some of them twice
  };
  struct Overflow {
    coherence::PageId page;
    uint64_t owner = 0;  // node + 1; 0: it leads to others
  };
  struct Reclaim {
    coherence::PageId page, next;
    uint32_t node = 0;
    uint32_t records = 0;
  };
  struct LogRoot {
    coherence::PageId page;
    uint64_t entries = 0;  // ever
  };
  std::vector<AbortedList> lists{};  // by node
  std::vector<Overflow> overflow{};
  std::vector<Reclaim> reclaim{};
  std::vector<LogRoot> log_roots{};
};

// Looks at all allocated pages, at most of them only at what they are.  REQUIRES: no other node is in the pool, and no
// other session of this one changes a page.  kCorrupt: a page says that it belongs to a node that the pool has no room
// for.
coherence::Result<FoundPages> find_pages(bufmgr::BufferPool& pool, bufmgr::Session& session);

}  // namespace engine
