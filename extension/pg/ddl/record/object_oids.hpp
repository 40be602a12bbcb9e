// OIDs of what PostgreSQL has no variable for: constraints, triggers, functions, schemas and more get the coordinator's
// after the replay, with whatever this statement made that refers to them.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// Whether objects of that catalog have one OID on all primaries.
bool has_common_oid(Oid catalog);

// An operator may come with commutator and negator, which no hook tells of.  OIDs, of those that are new.
List* shells_of(const List* made);  // DdlObject*

// DdlObject*: the coordinator's, and those that were made here, one for one.
void impose_object_oids(const List* wanted, const List* made);

// Labels of enums, whose OIDs are what rows hold.
List* labels_of(const List* types);  // DdlLabel*
void impose_labels(const List* labels);

}  // namespace gcl
