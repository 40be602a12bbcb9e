// Accesses to pages of the pool, in PostgreSQL's own counters: pgBufferUsage, from which EXPLAIN (BUFFERS),
// pg_stat_statements and the sums over parallel workers are made; the relation's, behind pg_statio_* and
// pg_stat_database; and VACUUM's and ANALYZE's, by which they pace themselves.
//
// runtime.what-usage-counts: hit: an access to a page that this primary had. read: the page's bytes came from a memory
//     node or another primary. dirtied: a page changed that was as in the pool, by a hint too. written: a page that
//     this session wrote back to have room.
// runtime.nothing-counted-twice: Nothing is counted twice: these are differences of the session's own numbers
//     (bufmgr.accesses-counted-once), taken when an engine operation has ended.  One that ended by ERROR is counted
//     with the next.
#pragma once

extern "C" {
#include "postgres.h"

#include "utils/relcache.h"
}

#include "bufmgr/session.hpp"

namespace gcl {

struct PageAccessesTold {
  const bufmgr::Session* session;  // null: this process is not attached
  uint64_t accesses, moved;        // of it, that the server knows of
};
extern PageAccessesTold page_accesses_told;

void tell_page_accesses(Relation rel);

// Accesses since the last call were for `rel`; null: for no relation that is known.
inline void count_page_accesses(Relation rel) {
  if (page_accesses_told.session != nullptr &&
      page_accesses_told.session->page_accesses() != page_accesses_told.accesses)
    tell_page_accesses(rel);
}

// With the session's life; null: it ends.
void count_page_accesses_of(const bufmgr::Session* session);

}  // namespace gcl
