// Attribute versions: numbers PostgreSQL keeps per column (in pg_attribute.attoptions), drawn from the local WAL
// position, and stores in composite values.  They must be the same on every primary, and must grow when a column is
// added or gets another type; another primary's WAL may be far behind.  So around such statements they are lowered, and
// set right afterwards.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// The versions of a table's columns, in the caller's memory context.
DdlRelationState* versions_of(Oid table);
// Lower than any WAL position; within the transaction that changes columns, under its lock.
void lower_versions(const DdlRelationState* before);
// Sets the versions back; new and changed columns get higher ones.
void raise_versions(const DdlRelationState* before);
// Sets the coordinator's versions.
void impose_versions(const DdlRelationState* state);

}  // namespace gcl
