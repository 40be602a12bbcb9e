#include "extension/pg/ddl/node/database_list.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

namespace gcl {
namespace {

int rank_as_home(const Form_pg_database form, const char* avoided) {
  const char* name = NameStr(form->datname);
  if (form->datconnlimit == DATCONNLIMIT_INVALID_DB || strcmp(name, avoided) == 0) return 0;
  if (strcmp(name, "postgres") == 0) return 4;
  if (strcmp(name, "template1") == 0) return 3;
  return form->datistemplate ? 1 : 2;
}

// A plain scan, as the autovacuum launcher's: without a database no index of a catalog can be relied on.
template <class Visit>
void visit_databases(Visit visit) {
  MemoryContext caller = CurrentMemoryContext;
  StartTransactionCommand();
  (void)GetTransactionSnapshot();
  Relation catalog = table_open(DatabaseRelationId, AccessShareLock);
  TableScanDesc scan = table_beginscan_catalog(catalog, 0, nullptr);
  while (HeapTuple tuple = heap_getnext(scan, ForwardScanDirection))
    visit(reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple)));
  table_endscan(scan);
  table_close(catalog, AccessShareLock);
  CommitTransactionCommand();
  MemoryContextSwitchTo(caller);
}

}  // namespace

void find_home(const char* avoided, char* home) {
  int best = 0;
  *home = '\0';
  visit_databases([&](const Form_pg_database form) {
    if (rank_as_home(form, avoided) <= best) return;
    best = rank_as_home(form, avoided);
    strlcpy(home, NameStr(form->datname), NAMEDATALEN);
  });
}

Oid find_database(const char* database) {
  Oid found = InvalidOid;
  visit_databases([&](const Form_pg_database form) {
    if (strcmp(NameStr(form->datname), database) == 0) found = form->oid;
  });
  return found;
}

}  // namespace gcl
