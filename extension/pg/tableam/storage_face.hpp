// The relation that a scan names to PostgreSQL (TableScanDesc::rs_rd) where the server reads ahead by itself: in a
// bitmap scan, and in ANALYZE.  The table's own file has one block, so reading ahead in that file fails from its second
// segment on, and with it the statement.
//
// tableam.face-for-callbacks: The server uses it only to call the scan's callbacks and to read ahead.  So it has the
//     table's names and access method, and nothing else of a relation; our callbacks go to the table itself.
// tableam.face-reads-nothing: In its storage every block that a gcl table can have lies in an open segment, and reading
//     ahead reads nothing: so no look-up of a segment can fail.
#pragma once

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "catalog/pg_class.h"
}

namespace gcl {

struct StorageFace {
  RelationData rel;
  FormData_pg_class form;
};

// Fills `face` and returns its relation, which lives as long.
Relation storage_face_of(Relation table, StorageFace* face);

}  // namespace gcl
