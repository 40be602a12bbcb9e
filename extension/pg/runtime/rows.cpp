#include "extension/pg/runtime/rows.hpp"

#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/version.hpp"

namespace gcl {

void require_pool() {
  if (node_pool() == nullptr)
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("this server takes part in no gcl pool"));
}

void raise_other_version(int columns, int expected) {
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("the extension gcl of this database is not of the version of its library"),
          errdetail("A function has %d columns in the database; that of library version %s has %d.", columns, kVersion,
                    expected),
          errhint("Use ALTER EXTENSION gcl UPDATE."));
  pg_unreachable();
}

ReturnSetInfo* rows_of(FunctionCallInfo fcinfo) {
  InitMaterializedSRF(fcinfo, 0);
  return reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
}

}  // namespace gcl
