// The btree dispatch: one access method in the catalog, two implementations.  An index is served by PostgreSQL's nbtree
// if its table is an ordinary one and by our B-link tree if its table is a gcl table.
//
// index.catalog-says-btree: The catalog never says anything but `btree`; planner-facing callbacks without a Relation
//     are nbtree's own.
// index.first-callback-decides: Which side serves an index is decided at the first callback that is given its Relation;
//     then the function pointers of that relcache entry (a private copy) are overwritten, so that an ordinary index
//     costs nothing more.
// index.build-decides-anew: ambuild always decides anew: an index is rebuilt when its table changes its access method.
// index.catalogs-without-lookup: Indexes of system catalogs are decided without a catalog look-up.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/tableam.h"
#include "utils/relcache.h"
}

namespace gcl {

// Called once from _PG_init while libraries are preloaded.  `gcl_tables` is what the table AM's handler returns.  FATAL
// with a hint if this server's nbtree is not the one we know (see handler_patch.hpp).
void install_btree_dispatch(const TableAmRoutine* gcl_tables);

// Whether `index` belongs to a gcl table.
bool is_gcl_index(Relation index);

}  // namespace gcl
