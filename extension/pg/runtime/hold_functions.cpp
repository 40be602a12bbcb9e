// SQL functions for a cut through the logs of all primaries: see sql/gcl--1.0.sql.
#include "extension/pg/runtime/commit_hold.hpp"

extern "C" {
#include "fmgr.h"
#include "utils/pg_lsn.h"

PG_FUNCTION_INFO_V1(gcl_hold_commits);
PG_FUNCTION_INFO_V1(gcl_release_commits);
}

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

namespace {

constexpr int kHoldMostMs = 60'000;

}  // namespace

Datum gcl_hold_commits(PG_FUNCTION_ARGS) {
  const int ms = PG_GETARG_INT32(0);
  if (ms < 1 || ms > kHoldMostMs)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("commits are held for 1 to %d ms, not %d", kHoldMostMs, ms));
  PG_RETURN_LSN(hold_commits(ms));
}

Datum gcl_release_commits(PG_FUNCTION_ARGS) {
  (void)fcinfo;
  PG_RETURN_BOOL(release_commits());
}
