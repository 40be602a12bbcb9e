// pg_class.relpages of gcl indexes.  ANALYZE and CREATE INDEX ask the server's files for it, where an index has its
// local file's two blocks; the true number is put in their place before the transaction ends.
#pragma once

extern "C" {
#include "postgres.h"

#include "utils/relcache.h"
}

namespace gcl {

// The server is about to note sizes of the table's indexes; REQUIRES: it is locked until the transaction ends.
void note_counted(Relation table);
void install_index_sizes();  // from _PG_init

// VACUUM has skipped leaves that transactions hold: entries that it was to remove may be there still.
void note_skipped_leaves() noexcept;
bool take_skipped_leaves() noexcept;  // since it was asked last

}  // namespace gcl
