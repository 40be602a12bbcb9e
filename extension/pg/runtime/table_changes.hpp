// Changes of gcl tables, told among the primaries: every server's autovacuum decides by its own counters, and those
// know only what its own sessions did.  A worker tells the table's header page what they did and adds to the server's
// counters what the others did, so that a primary that only reads a table analyzes it, and VACUUM is done by the
// primary that comes first.
//
// runtime.cluster-figures-for-autovacuum: What a session's row counts in pg_stat views (n_tup_ins, ...) stays this
//     server's; only the figures autovacuum decides by (live and dead rows, changes since ANALYZE, insertions since
//     VACUUM) are the cluster's.
// runtime.vacuum-sets-all: A VACUUM anywhere sets every primary's figures for dead rows to what it left.
// runtime.losses-are-harmless: Nothing but such decisions may hang on this: what is lost with a crash, or when more
//     tables are open than the registry holds, is not told.
#pragma once

#include "coherence/base/ids.hpp"
#include "extension/engine/heap/relation_map.hpp"
#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "storage/spin.h"
}

namespace gcl {

struct LocalCounts {
  int64 inserted, updated, deleted;
};

struct ChangedTable {
  Oid database, table;  // InvalidOid: a free place
  uint64_t header;
  LocalCounts told;             // of this server's totals, what the header page knows
  engine::RelationCounts seen;  // of the header page, what this server's counters know
  bool looked;                  // `seen` is set
  uint32_t gone;                // rounds without counters: the table was dropped, or nothing was reported yet
};

inline constexpr uint32_t kChangedTables = 1024;

struct TableChanges {
  slock_t lock;
  ChangedTable table[kChangedTables];
};

// A backend has opened the table for the first time: from now on its changes are told.
void note_open_table(Oid table, coherence::PageId header);

// One round, by the worker.  How long to sleep until the next: half of autovacuum_naptime, in ms.
void tell_table_changes();
long table_changes_interval();

}  // namespace gcl
