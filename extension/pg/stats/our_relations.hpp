// The gcl relations of the current database, and which of them a page belongs to.
#pragma once

#include "coherence/base/ids.hpp"
#include "extension/pg/boundary/pg.hpp"
#include "extension/pg/runtime/relation_record.hpp"

namespace gcl {

struct OurRelation {
  Oid oid;
  char relkind;
  coherence::PageId header;  // a table's header page, a tree's meta page, a sequence's page
};

// Palloc'd, *count of them; without those that another session has locked exclusively, and those of other databases.
OurRelation* our_relations(uint32_t* count);

// Takes AccessShareLock if that is free; null: it is not, or the relation is gone.  A view must not wait.
Relation open_without_waiting(Oid relation);

}  // namespace gcl
