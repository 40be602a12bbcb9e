// The relation that a scan names to PostgreSQL (TableScanDesc::rs_rd) where that reads ahead by itself: a bitmap scan,
// and ANALYZE.  The rows are in the pool and the table's own file has one block, so reading ahead in that fails from
// its second segment on, and with it the statement.
//
// tableam.face-for-callbacks: Through it the server calls the scan's callbacks, and reads ahead, nothing else.  So it
//     has the table's names and its access method, and what a relation has besides, it has not; ours go to the table
//     itself.
// tableam.face-reads-nothing: In its storage every block that a gcl table can have is in a segment that is open, and
//     what is read ahead is nothing: reading ahead has nothing left to look up that could be missing.
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
