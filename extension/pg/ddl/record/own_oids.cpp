#include "extension/pg/ddl/record/own_oids.hpp"

#include "extension/oid_range.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"

extern "C" {
#include "access/transam.h"
#include "storage/lwlock.h"
}

namespace gcl {
namespace {

constexpr uint32_t kFewLeft = kOidsPerNode / 16;

struct Taken {  // by whomever on this server, since the statement began
  Oid first, next;
  bool has(Oid oid) const { return first <= next ? oid >= first && oid < next : oid >= first || oid < next; }
};

void check_one(const Taken& taken, Oid oid) {
  const OidRange mine = oids_of_node(ddl_node());
  if (mine.has(oid) || !taken.has(oid)) return;
  ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                  errmsg("object ID %u is not one of those that this primary gives", oid),
                  errdetail("Primary %d gives %u to %u; another primary may give this one, too.", ddl_node(),
                            mine.first, mine.end - 1),
                  errhint("Stop this primary, run pg_resetwal -o %u, and start it: IDs that are in use are passed "
                          "over.",
                          mine.first)));
}

void warn_of_end(Oid next) {
  const OidRange mine = oids_of_node(ddl_node());
  if (!mine.has(next) || mine.end - next > kFewLeft) return;
  ereport(WARNING, (errmsg("primary %d has %u object IDs left", ddl_node(), mine.end - next),
                    errhint("Before they have been used, stop it, run pg_resetwal -o %u, and start it: IDs that are in "
                            "use are passed over.",
                            mine.first)));
}

}  // namespace

Oid next_oid_of_server() {
  LWLockAcquire(OidGenLock, LW_SHARED);
  const Oid next = ShmemVariableCache->nextOid;
  LWLockRelease(OidGenLock);
  return next;
}

void check_own_oids(const DdlRecord* record, Oid before) {
  const Taken taken{before, next_oid_of_server()};
  if (taken.first == taken.next) return;
  ListCell* cell;
  foreach (cell, record->made) check_one(taken, static_cast<DdlMade*>(lfirst(cell))->object.oid);
  foreach (cell, record->labels) check_one(taken, static_cast<DdlLabel*>(lfirst(cell))->oid);
  warn_of_end(taken.next);
}

}  // namespace gcl
