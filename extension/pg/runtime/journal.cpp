#include "extension/pg/runtime/journal.hpp"

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

using coherence::Errc;

int journal_sqlstate(Errc outcome) {
  if (outcome == Errc::kNoSpace) return ERRCODE_DISK_FULL;
  return outcome == Errc::kCorrupt ? ERRCODE_DATA_CORRUPTED : ERRCODE_IO_ERROR;
}

void raise_unjournaled(Errc outcome, const coherence::Problem& problem) {
  ereport(ERROR, errcode(journal_sqlstate(outcome)), errmsg("gcl: the pool's journal could not be written"),
          errdetail("%s", problem.text),
          errhint("Nothing was changed. The server must be able to write beside the saved pool (gcl.pool_file)."));
  pg_unreachable();
}

}  // namespace gcl
