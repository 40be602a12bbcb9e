// Rows of the server's catalogs by the OIDs that an index begins with: what a look-up costs does not depend on how much
// else the catalog holds, which the plan of a query for no values in particular cannot know.
#pragma once

#include <initializer_list>

#include "extension/pg/ddl/base/pg.hpp"

extern "C" {
#include "access/genam.h"
#include "access/skey.h"
#include "utils/fmgroids.h"
}

namespace gcl {

struct CatalogKey {
  AttrNumber column;
  Oid oid;
};

// work(HeapTuple) for each; it may not raise what it owns anything across.
template <class Work>
void each_catalog_row(Relation catalog, Oid index, std::initializer_list<CatalogKey> keys, Work work) {
  ScanKeyData scan_keys[4];
  Assert(keys.size() <= lengthof(scan_keys));
  int count = 0;
  for (const CatalogKey& key : keys)
    ScanKeyInit(&scan_keys[count++], key.column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(key.oid));
  SysScanDesc scan = systable_beginscan(catalog, index, true, nullptr, count, scan_keys);
  while (HeapTuple tuple = systable_getnext(scan)) work(tuple);
  systable_endscan(scan);
}

}  // namespace gcl
