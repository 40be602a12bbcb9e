// Shapes: what a statement left of a relation that replay would decide differently, read on the author and imposed on
// the replay: where its pages are, statistics, attribute versions, the missing values of added columns.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// Null: there is no such relation any more.
DdlShape* shape_of(Oid relation);
void impose_shape(const DdlShape* shape);

// A rewrite leaves a transaction id in pg_class, as if rows in the pool had to be frozen.
void forget_frozen_ids(Oid table);

}  // namespace gcl
