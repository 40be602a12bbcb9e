// Relation states: what a statement left of a relation that replay would decide differently, read on the coordinator
// and imposed on the replay: where its pages are, statistics, attribute versions, the missing values of added columns.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// Null: there is no such relation any more.
DdlRelationState* relation_state_of(Oid relation);
void impose_relation_state(const DdlRelationState* state);

// A rewrite leaves a transaction id in pg_class, as if rows in the pool had to be frozen.
void forget_frozen_ids(Oid table);

}  // namespace gcl
