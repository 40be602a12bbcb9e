// pg_relation_size, pg_table_size, pg_indexes_size and pg_total_relation_size (and with them \dt+) of gcl tables and
// their indexes: pages in the pool.  The server's own functions look at the local files only, with no way for an access
// method to say otherwise, so they are replaced like btree's handler (builtin_patch.hpp) and called for all else.
//
// stats.size-counts-used-pages: Pages in use count, of a table those of its extents, of an index all of the tree; other
//     forks are empty.
// stats.unknown-size-is-null: Where the pool cannot be asked (fenced, not joined yet) the answer is NULL, as for a
//     relation that is gone: a listing of all tables must not fail for it.
//
// (Not chosen: growing the local file, sparse, to the true size.  A base backup would copy it, zero by zero.)
#pragma once

namespace gcl {
void replace_size_functions();  // from _PG_init
}
