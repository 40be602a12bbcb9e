#include "extension/pg/runtime/rows.hpp"

#include "extension/pg/runtime/node.hpp"

namespace gcl {

void require_pool() {
  if (node_pool() == nullptr)
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("this server takes part in no gcl pool"));
}

ReturnSetInfo* rows_of(FunctionCallInfo fcinfo) {
  InitMaterializedSRF(fcinfo, 0);
  return reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
}

}  // namespace gcl
